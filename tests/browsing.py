"""Pages in a real browser: Debian's chromium, driven by Playwright, with no network."""

import shutil
from contextlib import contextmanager

CHROMIUM = shutil.which("chromium")
NONE = "chromium is not installed: apt-get install chromium"
OFFLINE = [
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update", "--disable-extensions"),
]


@contextmanager
def launched():
    """A browser."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as p:
        browser = p.chromium.launch(executable_path=CHROMIUM, args=OFFLINE)
        yield browser
        browser.close()


@contextmanager
def visiting(browser):
    """Open pages; what each asks for, says or complains of is in its `seen`."""
    contexts = []

    def visit(address, width=1280, **options):
        contexts.append(browser.new_context(viewport={"width": width, "height": 900}, **options))
        page = contexts[-1].new_page()
        page.seen = seen = {"requests": [], "console": [], "errors": [], "dialogs": []}
        page.on("request", lambda request: seen["requests"].append(request.url))
        page.on("console", lambda message: seen["console"].append(message.text))
        page.on("pageerror", lambda error: seen["errors"].append(str(error)))
        page.on("dialog", lambda d: (seen["dialogs"].append(d.message), d.dismiss()))
        page.goto(address)
        return page

    yield visit
    for context in contexts:
        context.close()


def background(page):
    return page.evaluate("getComputedStyle(document.body).backgroundColor")


def width(page):
    """How wide the page is with everything opened."""
    page.evaluate("document.querySelectorAll('details').forEach(d => { d.open = true; })")
    return page.evaluate("document.documentElement.scrollWidth")
