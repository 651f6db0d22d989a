"""Pictures of every review page, wide and narrow, light and dark, of a store with demo data: `make screenshots`.

Starts the product on an embedded store of its own in a temporary folder and drives Chromium with Playwright. Nothing
but that server is asked for anything. The pictures go to docs/screenshots; three of them are kept in the repository.
"""

import argparse
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from PIL import Image
from playwright.sync_api import Browser, BrowserContext, Page, Route, sync_playwright

ROOT: Final = Path(__file__).resolve().parent.parent
FOLDER: Final = ROOT / "docs" / "screenshots"
CHROMIUM: Final = ("chromium", "chromium-browser", "google-chrome")
PATIENCE: Final = 600.0  # seconds for the start with demo data, on a machine that does much else
READY: Final = re.compile(r"^Sonder is ready: (http://[\d.:]+)/ ", re.MULTILINE)
LOGIN: Final = re.compile(r"^  login to review +(\S+) / (\S+)$", re.MULTILINE)
SIZES: Final = {"1280": (1280, 800), "360": (360, 740)}  # CSS pixels
COLOURS: Final = 128
Theme = Literal["light", "dark"]
THEMES: Final[tuple[Theme, ...]] = ("light", "dark")


@dataclass(frozen=True, kw_only=True)
class Started:
    """The running product."""

    address: str
    username: str
    password: str


@dataclass(frozen=True, kw_only=True)
class Screen:
    """A page to look at: by its address, or by a link on the page of another."""

    name: str
    path: str
    follow: str = ""  # selector of the link that leads there from `path`


SCREENS: Final = (
    Screen(name="dashboard", path="/review/"),
    Screen(name="inbox", path="/review/inbox/"),
    Screen(name="inbox-mine", path="/review/inbox/?tab=second"),
    Screen(name="inbox-snoozed", path="/review/inbox/?tab=snoozed"),
    Screen(name="lesson-quarantined", path="/review/demo/", follow="text=Say why a lesson is kept out"),
    Screen(name="lesson-trial", path="/review/demo/", follow="text=about which a coin decides"),
    Screen(name="lessons", path="/review/lessons/"),
    Screen(name="quarantine", path="/review/quarantine/"),
    Screen(name="contradiction", path="/review/contradictions/"),
    Screen(name="outcomes", path="/review/outcomes/"),
    Screen(name="interactions", path="/review/interactions/"),
    Screen(name="preferences", path="/review/preferences/"),
    Screen(name="preference", path="/review/demo/", follow="text=Follow a preference"),
    Screen(name="prune", path="/review/demo/", follow="text=Read a plan"),
    Screen(name="retrieval", path="/review/retrieval/?q=Group+orders+by+day+in+the+time+zone+of+the+shop"),
    Screen(name="health", path="/review/health/"),
    Screen(name="audit", path="/review/audit/"),
    Screen(name="people", path="/review/people/"),
    Screen(name="settings", path="/review/settings/"),
    Screen(name="keys", path="/review/keys/"),
    Screen(name="demo", path="/review/demo/"),
)


@contextmanager
def product() -> Iterator[Started]:
    """`manage.py up --demo` on a store of its own, ready; afterwards it is stopped and the store gone."""
    folder = Path(tempfile.mkdtemp(prefix="sonder-screenshots-"))
    folder.chmod(0o755)  # PostgreSQL, which does not run as root, must come through
    own = {name: value for name, value in os.environ.items() if name not in ("DATABASE_URL", "CELERY_BROKER_URL")}
    log = folder / "output"
    with (
        log.open("w", encoding="utf-8") as output,
        subprocess.Popen(
            [sys.executable, "manage.py", "up", "--demo", "--port", "0"],
            cwd=ROOT,
            env=own | {"SONDER_VAR": str(folder / "var"), "SONDER_TRUST_POLICY": "trial"},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
        ) as process,
    ):
        try:
            yield _started(process, log)
        finally:
            process.send_signal(signal.SIGINT)
            process.wait(timeout=PATIENCE)
            shutil.rmtree(folder)


def _started(process: subprocess.Popen[bytes], log: Path) -> Started:
    deadline = time.monotonic() + PATIENCE
    while (ready := READY.search(log.read_text(encoding="utf-8"))) is None:
        if process.poll() is not None or time.monotonic() > deadline:
            raise SystemExit(f"The product did not start:\n{log.read_text(encoding='utf-8')}")
        time.sleep(0.2)
    login = LOGIN.search(log.read_text(encoding="utf-8"))
    assert login is not None, "a new store tells a login"
    return Started(address=ready[1], username=login[1], password=login[2])


def _only_here(address: str) -> Callable[[Route], None]:
    def route(asked: Route) -> None:
        if asked.request.url.startswith(address):
            asked.continue_()
        else:
            asked.abort()

    return route


def enter(browser: Browser, started: Started, size: str, theme: Theme) -> BrowserContext:
    """A window of this size and theme in which the reviewer is logged in."""
    width, height = SIZES[size]
    context = browser.new_context(
        base_url=started.address,
        viewport={"width": width, "height": height},
        color_scheme=theme,
        reduced_motion="reduce",
        locale="en-GB",
        timezone_id="UTC",
    )
    context.route("**/*", _only_here(started.address))
    page = context.new_page()
    page.goto("/login/?next=/review/")
    page.fill("input[name=username]", started.username)
    page.fill("input[name=password]", started.password)
    page.press("input[name=password]", "Enter")
    page.wait_for_selector("#main h1")
    return context


def settle(page: Page) -> None:
    """Waits for the worker: it takes up what the demo left for it, and leaves its first traces."""
    deadline = time.monotonic() + PATIENCE
    while page.goto("/review/") and "never" in page.locator("section.figures").inner_text():
        if time.monotonic() > deadline:
            raise SystemExit("The worker did not run.")
        page.wait_for_timeout(500)


def show(page: Page, screen: Screen) -> None:
    """The screen, as it is when somebody has just come to it."""
    page.goto(screen.path)
    if screen.follow:
        link = page.locator(screen.follow).first.get_attribute("href")
        assert link is not None, f"{screen.name}: nothing leads there"
        page.goto(link)
    page.wait_for_load_state("load")
    page.evaluate("document.activeElement?.blur()")


def picture(page: Page, file: Path, *, whole: bool) -> None:
    """One file; with `whole` all of the page, else what is seen without scrolling."""
    page.screenshot(path=file, full_page=whole, animations="disabled")
    with Image.open(file) as taken:  # the pages have few colours: a palette makes a third of it
        small = taken.convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE)
    small.save(file, optimize=True)


def main() -> None:
    """Takes the pictures."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--whole", action="store_true", help="whole pages instead of the first screenful")
    options.add_argument("--folder", type=Path, default=FOLDER, help="where the pictures go")
    options.add_argument("names", nargs="*", help="only these screens")
    asked = options.parse_args()
    asked.folder.mkdir(parents=True, exist_ok=True)
    wanted = [screen for screen in SCREENS if not asked.names or screen.name in asked.names]
    program = next(filter(None, map(shutil.which, CHROMIUM)), None)
    if program is None:
        raise SystemExit("There is no Chromium. Install it (Debian and Ubuntu: apt install chromium).")
    with product() as started, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        for size in SIZES:
            for theme in THEMES:
                context = enter(browser, started, size, theme)
                settle(context.pages[0])
                for screen in wanted:
                    show(context.pages[0], screen)
                    picture(context.pages[0], asked.folder / f"{screen.name}-{theme}-{size}.png", whole=asked.whole)
                context.close()
        browser.close()
    sys.stdout.write(f"{len(wanted) * len(SIZES) * len(THEMES)} pictures in {asked.folder}\n")


if __name__ == "__main__":
    main()
