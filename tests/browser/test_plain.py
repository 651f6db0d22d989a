"""Without JavaScript everything that can be decided is decided, by pages and forms alone."""

from collections.abc import Callable

from memory.models import Adjudication, Lesson, Outcome
from tests.browser.conftest import Visitor
from tests.browser.scene import Scene
from tests.browser.steps import planned, reword

Enter = Callable[..., Visitor]


def state(lesson: Lesson) -> str:
    return Lesson.objects.values_list("state", flat=True).get(pk=lesson.pk)


def test_a_reviewer_approves_rejects_judges_and_undoes(visitor: Enter, scene: Scene) -> None:
    ana = visitor("ana", java_script_enabled=False)
    ana.visit(f"/review/lessons/{scene.lessons['waiting'].pk}/")
    ana.page.locator("#do-approve").click()
    assert "Approved" in ana.page.locator(".toast").inner_text()
    assert state(scene.lessons["waiting"]) == "active"

    ana.visit(f"/review/lessons/{scene.lessons['good'].pk}/")
    ana.page.locator("#do-reject").click()
    ana.page.get_by_label("Wrong").check()
    ana.page.fill("#ask-note", "It is not so.")
    ana.page.get_by_role("button", name="Reject").click()
    assert state(scene.lessons["good"]) == "rejected"
    ana.page.locator(".toast").get_by_role("button", name="Undo").click()
    assert state(scene.lessons["good"]) == "active"

    ana.visit(f"/review/interactions/{scene.work['unjudged'].pk}/")
    ana.page.fill("#judge-note", "It would be sent back.")
    ana.page.locator("#judge-loss").click()
    judged = Outcome.objects.get(interaction=scene.work["unjudged"].pk)
    assert (judged.signal, judged.detail) == ("rejected", "It would be sent back.")
    assert Adjudication.objects.filter(reverts__isnull=True).count() == 3


def test_a_pair_is_decided(visitor: Enter, scene: Scene) -> None:
    ana = visitor("ana", java_script_enabled=False)
    ana.visit(f"/review/contradictions/{scene.contradiction.pk}/")
    ana.page.locator("#do-none").click()
    ana.page.locator("#main button.primary").click()
    scene.contradiction.refresh_from_db()
    assert scene.contradiction.verdict == "not_a_contradiction"


def test_a_maintainer_compares_restores_and_applies(visitor: Enter, scene: Scene) -> None:
    found, made = scene.preference, planned()
    first = found.text
    reword(found, "I prefer long answers.", "I prefer tables.")
    mia = visitor("mia", java_script_enabled=False)
    mia.visit(f"/review/preferences/{found.pk}/")
    mia.page.locator("input[name=a][value='1']").check()
    mia.page.locator("input[name=b][value='3']").check()
    mia.page.get_by_role("button", name="Compare A with B").click()
    assert mia.page.locator("h1").inner_text() == "Version 1 and version 3"
    assert "tables" in mia.page.locator("ins").all_inner_texts()[-1]
    mia.page.go_back()
    mia.page.locator("#restore-1").click()
    mia.page.get_by_role("button", name="Restore version 1").click()  # without a reason the browser asks for one
    assert mia.page.locator("h1").inner_text() == "Restore version 1"
    mia.page.get_by_label("It is not what is wanted").check()
    mia.page.get_by_role("button", name="Restore version 1").click()
    found.refresh_from_db()
    assert (found.revision, found.text) == (4, first)

    mia.visit(made.path)
    mia.page.locator(f"#row-{made.going[0].pk}").get_by_role("checkbox").uncheck()
    mia.page.locator(f"#row-{made.going[0].pk}").get_by_role("combobox").select_option("better_record")
    mia.page.fill("#count", "1")
    mia.page.get_by_role("button", name="Apply the plan").click()
    assert "1 lesson merged, 1 kept" in mia.page.locator(".toast").inner_text()
    assert [Lesson.objects.filter(pk=lesson.pk).exists() for lesson in made.going] == [True, False]
    mia.page.get_by_role("link", name="Restore everything").click()
    mia.page.get_by_label("It was a trial run").check()
    mia.page.get_by_role("button", name="Restore everything").click()
    assert Lesson.objects.filter(pk=made.going[1].pk).exists()
