"""The documentation of the parameters and attributes that the estimators share.

`documented` inserts it into the docstrings of the estimators, so that each of them documents every
parameter of its own and no text is written twice.
"""

from __future__ import annotations

import re
from inspect import cleandoc, signature
from typing import TypeVar

__all__ = ["documented"]

T = TypeVar("T")


class Parameters:
    """Parameters of the estimators. NAME_fusion is that of `NanFusion*` where it differs.

    hidden_layer_sizes : int or sequence of int, default=(128, 128)
        Sizes of the hidden layers; empty for a linear model.
    activation : {"identity", "logistic", "tanh", "relu", "gelu", "silu"}, default="relu"
        Activation function of the hidden layers.
    compensation : {"none", "shared", "feature"}, default="feature"
        What a neuron adds for missing values:

        - "none": nothing (PROMISSING);
        - "shared": one learned weight times the missing share (mPROMISSING);
        - "feature": one learned weight per missing feature.
    compensation_rate : float, default=2
        Learning-rate multiplier for the weights of ``compensation="feature"``: ``compensation_rate
        / std(missing indicator)``. Rare gaps thus learn as fast as frequent ones. With 0, they
        learn like any other weight.
    gate_rate : float, default=100
        Learning-rate multiplier for the gates. The weights of every feature are multiplied by its
        gate, which starts at 1, so that irrelevant features are soon shut out. The fine bins of a
        number have a second gate, which starts at 0.1. With 0 there are no gates.
    linear_skip : bool, default=True
        Whether a linear skip connection is added for targets that need one. That is the case if a
        linear model explains two thirds of the variance, by leave-one-out errors, and explains less
        if numbers are clipped at three standard deviations. The network then learns the rest. It
        needs ``n_bins > 0``, the loss "mean_std" or "squared_error", and at most 400 encoded
        columns; `partial_fit` does not add one.
    modalities : mapping, optional
        The columns of every modality by its name: a list of names (str) or positions (int), one
        name, a slice of positions, a kind or dtype of columns ("number", "boolean", "category",
        "date", or what pandas' `select_dtypes` accepts), or a callable that receives the table and
        returns a list, such as scikit-learn's `make_column_selector`. By default there is one
        modality, "all", of all columns.
    units : int, sequence, mapping or "paper", optional
        Size of the representation of each modality: one number for all, or numbers by the order or
        the name of the modalities. "paper" are the sizes of the paper's twelve modalities. By
        default, four times the square root of the number of columns of the modality, rounded up.
    remainder : {"error", "drop", "modality"}, default="error"
        What is done with columns in no modality:

        - "error": an error names them;
        - "drop": they are ignored;
        - "modality": they form one more modality, "remainder".
    fusion_units : int, default=16
        Size of the fusion layer; 5 in the paper.
    augment_by : {"number", "subset"}, default="number"
        With "number", a row loses each modality with its own probability, drawn from U(0, 1), so
        that all numbers of lost modalities are equally likely. With "subset", all subsets are
        equally likely.
    augment_empty : bool, default=True
        Whether a row may lose all modalities, which teaches the prior. If False, each row keeps at
        least one; otherwise the distribution is unchanged.
    input_dropout : {"unknown", "zero"}, default="unknown"
        What dropout makes of an input value: missing, or zero, which is ordinary dropout and does
        not change missing values (the paper).
    n_members : int or "auto", default="auto"
        Networks in the ensemble. They are trained at once from different random starts, and their
        predictions are averaged. "auto" trains 12 networks, or 8 if there are more than 5,000 rows.
        With `warm_start`, the number is kept from the first fit.
    augment : bool, float or "auto", default="auto"
        Share of the rows of a batch that lose features during training (True: 0.5; "auto": 0.1).
        Such a row loses each feature with its own probability, drawn from U(0, 1). If more than an
        eighth of the cells are missing, "auto" also removes values from the other rows, only in
        columns that already have missing values, with probabilities up to 0.5. In addition, one row
        in 16 is empty; its target is the prior.
    augment_fusion : bool, float or "auto", default="auto"
        Share of the rows of a batch that lose modalities during training (True and "auto": 0.5), so
        that the network learns to predict without them, and predicts the prior for an empty row.
    prior_correction : bool, default=True
        Whether the outputs are corrected so that an empty row predicts the training prior exactly.
        The correction is zero for complete rows and grows with the fourth power of the missing
        share.
    min_known : float, default=0
        The model abstains from rows with a smaller known share: their probabilities and predicted
        numbers are NaN, and their predicted class is None.
    below_min_known : {"abstain", "raise"}, default="abstain"
        With "raise", a row below `min_known` is an error.
    dropout : float, default=0.1
        Dropout rate of the hidden layers.
    dropout_fusion : float, default=0.3
        Dropout rate in front of every layer; 0.1 in the paper.
    solver : {"adamw", "adam", "sgd"}, default="adamw"
        The optimiser.
    solver_fusion : {"adam", "adamw", "sgd"}, default="adam"
        The optimiser.
    alpha : float or "auto", default="auto"
        Strength of the decoupled weight decay with ``solver="adamw"``; otherwise of the L2 penalty,
        divided by the sum of weights of a batch, as in scikit-learn. "auto" is 1 for "adamw",
        otherwise 1e-4.
    batch_size : int or "auto", default="auto"
        Rows of a batch. "auto" is 64, or 128 from 16,384 rows on, or 256 from 65,536 rows on.
    learning_rate : {"cosine", "constant"}, default="cosine"
        "cosine" lowers the rate to 0 over `max_iter` epochs and, without validation, runs all of
        them. "constant" stops when the training loss no longer falls, as scikit-learn does. A
        `ConvergenceWarning` is given if "constant" ends before that, or if training ends after
        fewer than 100 steps.
    learning_rate_init : float, default=2e-3
        Initial learning rate.
    learning_rate_init_fusion : float, default=1e-3
        Initial learning rate.
    max_iter : int or "auto", default="auto"
        Largest number of epochs. "auto" is 64, or 24 for more than 5,000 rows. It is less, but at
        least 12, if the epochs would cover more than 350,000 rows in all, and more if they would
        make fewer than 300 steps.
    max_iter_fusion : int or "auto", default=200
        Largest number of epochs; "auto" as in `NanMLPClassifier`.
    shuffle : bool, default=True
        Whether rows are permuted in every epoch.
    random_state : int, RandomState or None, default=None
        Random seed of the initial weights, the validation split and the order of rows.
    tol : float, default=1e-4
        Smallest decrease of the loss that counts as an improvement.
    verbose : bool, default=False
        Whether to show a progress bar.
    warm_start : bool, default=False
        Whether `fit` continues from the last fit, with its encoding and on the same classes.
    momentum : float, default=0.9
        Momentum of ``solver="sgd"``.
    nesterovs_momentum : bool, default=True
        Whether ``solver="sgd"`` uses Nesterov's momentum.
    early_stopping : bool or "auto", default="auto"
        Whether `validation_fraction` of the rows are set aside. The best epoch on them is kept, and
        training stops when their loss has not improved by `tol` for `n_iter_no_change` epochs. Each
        member sets its own rows aside. "auto" does so from 100 rows on.
    validation_fraction : float, default=0.1
        Share of the rows that are set aside for validation, at least two rows.
    beta_1 : float, default=0.9
        Decay rate of the first moment in "adam" and "adamw".
    beta_2 : float, default=0.999
        Decay rate of the second moment in "adam" and "adamw".
    epsilon : float, default=1e-8
        Constant for numerical stability in "adam" and "adamw".
    n_iter_no_change : float, default=10
        Largest number of epochs without improvement; infinity runs all epochs.
    average : bool, default=True
        Whether an average of the weights over the last twentieth of the steps, at most 2,000, is
        validated and kept. `warm_start` continues from the average; `partial_fit` does not average.
    average_fusion : bool, default=False
        Whether an average of the weights over the last twentieth of the steps, at most 2,000, is
        validated and kept. `warm_start` continues from the average; `partial_fit` does not average.
    kinds : mapping, optional
        The kind of columns by name or position: "number", "boolean", "category" or "date". By
        default it is inferred. See `promissing.TableEncoder`.
    n_bins : int, default=16
        Bins of the piecewise-linear encoding of a number; 0 for a standardised number.
    n_bins_fusion : int, default=0
        Bins of the piecewise-linear encoding of a number; 0 for a standardised number.
    n_fine_bins : int or "auto", default="auto"
        Further, finer bins of a number. "auto" is 32 if few columns have that many values and there
        are gates, otherwise 0.
    max_categories : int, default=64
        Largest number of categories of a column; rarer ones share one category.
    unknown_categories : {"ignore", "error"}, default="ignore"
        Whether a category never seen in training counts as missing, or is an error.
    class_weight : dict or "balanced", optional
        Weights of the classes, as in scikit-learn.
    resample : bool, default=False
        Whether rows of the smaller classes are drawn repeatedly, with replacement, until all
        classes have as many rows as the largest. Only training rows are drawn, for each member
        separately; validation rows are weighted instead. The prior is then even.
    loss : {"mean_std", "squared_error", "poisson", "gaussian", "quantile"} or loss, \
default="mean_std"
        The loss, or an object of `promissing.networks.losses`:

        - "mean_std": squared error of the mean, and the standard deviation of the error beside it;
          see `predict` with ``return_std=True``;
        - "squared_error": the mean only;
        - "poisson": for counts and rates; `predict` returns the mean, which is never negative;
        - "gaussian": a mean and a standard deviation; see `predict` with ``return_std=True``;
        - "quantile": quantiles at 0.05, 0.25, 0.5, 0.75 and 0.95, or those of
          ``Pinball(levels=...)``; see `predict_quantiles`. `predict` returns the median.
    unseen : str
        Deprecated name of `unknown_categories`.
    fine_bins : int or "auto"
        Deprecated name of `n_fine_bins`.
    straight : bool
        Deprecated name of `linear_skip`.
    """


class Attributes:
    """Attributes of a fitted estimator.

    classes_ : ndarray (K,)
        The sorted class labels; the numbers of the labels if a row may have several.
    prior_ : ndarray
        Prediction for an empty row: weighted class shares in training, or mean targets (mean and
        standard deviation with ``loss="gaussian"``, quantiles with ``loss="quantile"``).
    prior_offset_ : ndarray (members, outputs) or None
        Correction of the outputs of an empty row; None without `prior_correction`.
    recipe_ : Recipe
        The values that were used for "auto" and for parameters that depend on others. Models from
        files of formats 1 to 3 do not have it.
    encoder_ : TableEncoder
        The fitted encoder of the columns.
    params_ : dict of ndarray
        The weights, each with a leading axis for the members.
    loss_curve_ : list of float
        Training loss by epoch, averaged over the members. `warm_start` and `partial_fit` continue
        it.
    validation_loss_curve_ : list of float
        The same for the validation rows; empty without validation.
    loss_ : float
        The last training loss.
    best_loss_ : float
        The lowest training loss.
    n_iter_ : int
        Epochs of the last call of `fit` or `partial_fit`.
    n_members_ : int
        Networks in the ensemble.
    neutralizers_ : dict of ndarray
        By feature, the values that have the same effect on each neuron as a missing value.
    n_features_in_ : int
        Columns of the table.
    feature_names_in_ : ndarray of str
        Names of the columns, if all of them are strings.
    n_outputs_ : int
        Outputs of the network.
    modalities_ : dict
        Positions of the columns of every modality, by name.
    modality_columns_ : dict
        Names of the columns of every modality, by name.
    missing_values_ : tuple of str
        Texts that were read as missing in the file the model was fitted on. Set by the command
        line.
    target_name_ : str or None
        Name of the target column. Set by the command line.
    reading_ : dict or None
        Options with which the table was read. Set by the command line.
    """


def documented(cls: type[T]) -> type[T]:
    """Insert the documentation of all parameters and attributes into the docstring of a class."""
    parameters, attributes = _entries(Parameters), _entries(Attributes)
    names = signature(cls).parameters
    fusion = "modalities" in names
    chosen = [
        f"{name}_fusion" if fusion and f"{name}_fusion" in parameters else name for name in names
    ]
    left_out = {"classes_"} if "class_weight" not in names else set()
    if not fusion:
        left_out |= {"modalities_", "modality_columns_"}
    sections = {
        "parameters": [
            parameters[name].replace("_fusion :", " :") for name in chosen if name in parameters
        ],
        "attributes": [text for name, text in attributes.items() if name not in left_out],
    }
    for name, texts in sections.items():
        lines = "\n".join(texts).replace("\n", "\n    ").replace("\n    \n", "\n\n")
        cls.__doc__ = (cls.__doc__ or "").replace(f"{{{name}}}", lines)
    return cls


def _entries(cls: type) -> dict[str, str]:
    """Return the entries of a docstring by name; none if Python removes docstrings (-OO)."""
    texts = re.split(r"^(?=\w+ : )", cleandoc(cls.__doc__ or ""), flags=re.MULTILINE)[1:]
    return {text.partition(" ")[0]: text.rstrip() for text in texts}
