"""The addresses of the review pages."""

from django.urls import path

from review.views import (
    contradictions,
    dashboard,
    deciding,
    keys,
    lesson,
    outcomes,
    preference_changes,
    preferences,
    prune,
    retrieval,
    settings,
)

app_name = "review"
urlpatterns = [
    path("", dashboard.home, name="dashboard"),
    path("seen/", dashboard.seen, name="seen"),
    path("dismiss/", dashboard.dismiss, name="dismiss"),
    path("settings/", settings.settings, name="settings"),
    path("keys/", keys.sheet, name="keys"),
    path("decide/", deciding.decide, name="decide"),
    path("decide/<str:verdict>/", deciding.ask, name="ask"),
    path("undo/", deciding.undo, name="undo"),
    path("lessons/", lesson.index, name="lessons"),
    path("lessons/<uuid:lesson_id>/", lesson.detail, name="lesson"),
    path("contradictions/", contradictions.queue, name="contradictions"),
    path("contradictions/<uuid:contradiction_id>/", contradictions.detail, name="contradiction"),
    path("contradictions/<uuid:item_id>/skip/", contradictions.skip, name="contradiction_skip"),
    path("outcomes/", outcomes.queue, name="outcomes"),
    path("outcomes/<uuid:item_id>/skip/", outcomes.skip, name="outcome_skip"),
    path("work/", outcomes.index, name="interactions"),
    path("work/<uuid:interaction_id>/", outcomes.detail, name="interaction"),
    path("work/<uuid:interaction_id>/private/", outcomes.private, name="interaction_private"),
    path("preferences/", preferences.index, name="preferences"),
    path("preferences/<uuid:preference_id>/", preferences.detail, name="preference"),
    path("preferences/<uuid:preference_id>/compare/", preferences.compare, name="preference_compare"),
    path("preferences/<uuid:preference_id>/version/", preferences.version, name="preference_version"),
    path("preferences/<uuid:preference_id>/edit/", preference_changes.edit, name="preference_edit"),
    path(
        "preferences/<uuid:preference_id>/restore/<int:number>/", preference_changes.restore, name="preference_restore"
    ),
    path("preferences/<uuid:preference_id>/revert/<int:number>/", preference_changes.revert, name="preference_revert"),
    path("prune/", prune.index, name="prune"),
    path("prune/replan/", prune.replan, name="prune_replan"),
    path("prune/<slug:digest>/", prune.detail, name="prune_plan"),
    path("prune/<slug:digest>/apply/", prune.apply, name="prune_apply"),
    path("prune/<slug:digest>/restore/", prune.restore, name="prune_restore"),
    path("prune/<slug:digest>/plan.<str:kind>", prune.export, name="prune_export"),
    path("retrieval/", retrieval.playground, name="retrieval"),
]
