"""A real browser on the real pages: Debian's Chromium, driven by Playwright, against a server of this process."""

import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from django.conf import settings
from django.contrib.auth import get_user_model
from django.test import Client
from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright

from memory.models import Account, EmbeddingSpace
from tests.browser.scene import Scene, build

WIDE, NARROW = {"width": 1280, "height": 800}, {"width": 360, "height": 740}
# A page swaps its content before it takes keys again; what it is about stands on the root for as long. And htmx begins
# in a task of its own once the page is there.
PENDING = """
    let pending = 0;
    const tell = (more) => {
      pending += more;
      document.documentElement.toggleAttribute("data-pending", pending > 0);
    };
    document.addEventListener("htmx:before:request", () => tell(1));
    document.addEventListener("htmx:finally:request", () => tell(-1));
    document.addEventListener("DOMContentLoaded", () => {
      tell(1);
      setTimeout(() => tell(-1));
    });
"""


@pytest.fixture(scope="package")  # no longer: where Playwright's loop runs, no other test can run one of its own
def chromium() -> Iterator[Browser]:
    program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if program is None:
        pytest.skip("There is no chromium on this machine: apt-get install chromium.")
    # Playwright's loop runs in this thread; Django would refuse the database beside it.
    os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "true"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield browser
        browser.close()
    del os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"]


@pytest.fixture
def scene(transactional_db: None, space: EmbeddingSpace) -> Scene:
    """A small store with one of each: quarantine, trial, candidate, contradiction, judged and unjudged work."""
    account = Account.objects.create(slug="acme", name="Acme", review_policy="auto")
    return build(account)


@dataclass
class Visitor:
    """Somebody at a browser; what the page complained about is kept."""

    page: Page
    base: str
    complaints: list[str] = field(default_factory=list)
    pressed: int = 0  # keys so far; a chord is one

    def visit(self, path: str) -> Page:
        answer = self.page.goto(self.base + path)
        assert answer is not None
        assert answer.ok, f"{path} answers {answer.status}"
        return self.page

    def press(self, *keys: str) -> None:
        """Each key, once the page has settled from the one before."""
        for key in keys:
            self.settled()
            self.page.keyboard.press(key)
            self.pressed += 1
            self.page.wait_for_timeout(50)
        self.settled()

    def settled(self) -> None:
        """Waits for the answer of a request that is under way."""
        self.page.locator("html:not([data-pending]) #main[aria-busy=false]").wait_for()

    def told(self, words: str) -> None:
        """Waits until the status region says this."""
        self.page.locator("#status", has_text=words).wait_for(state="attached")

    @property
    def focus(self) -> str:
        """Tag and text of what has the focus."""
        return str(self.page.evaluate("document.activeElement.tagName + ' ' + document.activeElement.innerText"))


@pytest.fixture
def visitor(chromium: Browser, live_server: Any, scene: Scene) -> Iterator[Callable[..., Visitor]]:
    """Opens a context of its own for each person, logged in."""
    contexts: list[BrowserContext] = []
    visitors: list[Visitor] = []

    def enter(name: str | None, *, scheme: str = "light", narrow: bool = False, **options: Any) -> Visitor:
        size = NARROW if narrow else WIDE
        context = chromium.new_context(viewport=size, color_scheme=scheme, has_touch=narrow, **options)
        context.set_default_timeout(30_000)
        context.add_init_script(PENDING)
        contexts.append(context)
        if name is not None:
            client = Client()
            client.force_login(get_user_model().objects.get(username=name))
            value = client.cookies[settings.SESSION_COOKIE_NAME].value
            context.add_cookies([{"name": settings.SESSION_COOKIE_NAME, "value": value, "url": live_server.url}])
        someone = Visitor(page=context.new_page(), base=live_server.url)
        someone.page.on("pageerror", lambda error: someone.complaints.append(str(error)))
        someone.page.on(
            "console",
            lambda said: (
                someone.complaints.append(said.text)
                if said.type == "error" and "Failed to load resource" not in said.text
                else None
            ),
        )
        visitors.append(someone)
        return someone

    yield enter
    for context in contexts:
        context.close()
    complaints = [complaint for someone in visitors for complaint in someone.complaints]
    assert complaints == [], "scripts and the content security policy are content with every page"
