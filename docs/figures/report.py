"""Take docs/figures/report.png: the report on a generated cohort, in a browser.

    python docs/figures/report.py [report.html]

Needs chromium and the Python packages playwright and Pillow. A page that is there already is taken
as it is; else it is made, which takes about a minute. On the left it is seen on a desk, on the
right on a phone in the dark.
"""

from __future__ import annotations

import io
import shutil
import sys
import tempfile
from pathlib import Path

from PIL import Image
from playwright.sync_api import sync_playwright

from promissing.datasets import make_cohort
from promissing.io import define_task
from promissing.report import gather, render

DESK, PHONE, HEIGHT = 1180, 390, 1120
GAP = 28


def make_page() -> str:
    cohort = make_cohort()
    frame = cohort.X.assign(remission=cohort.y.map({0: "no", 1: "yes"}))
    problem = define_task(frame, "remission", modalities=cohort.modalities)
    asked = {"strategies": None, "folds": 3, "rows": 60, "settings": {"max_iter": 60}}
    return render(gather(problem, frame=frame, source="cohort.csv", **asked))


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as p:
        path = Path(sys.argv[1] if len(sys.argv) > 1 else f"{folder}/report.html").resolve()
        if not path.exists():
            path.write_text(make_page(), encoding="utf-8")
        browser = p.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        pictures = []
        for width, scheme in ((DESK, "light"), (PHONE, "dark")):
            page = browser.new_page(
                viewport={"width": width, "height": HEIGHT},
                color_scheme=scheme,
                reduced_motion="reduce",  # No picture while the page still scrolls.
            )
            page.goto(path.as_uri())
            if width == PHONE:
                page.locator("#sort").select_option("uncertain")
                page.locator("#row-list [role=option]").nth(2).click()
                page.evaluate("document.getElementById('status').scrollIntoView()")
            pictures.append(Image.open(io.BytesIO(page.screenshot())))
        browser.close()
    whole = Image.new("RGB", (DESK + GAP + PHONE, HEIGHT), "white")
    whole.paste(pictures[0], (0, 0))
    whole.paste(pictures[1], (DESK + GAP, 0))
    # A palette keeps the file small; the page has few colours.
    target = Path(__file__).parent / "report.png"
    whole.quantize(128, dither=Image.Dither.NONE).save(target, optimize=True)
    print(f"{target.name}: {target.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
