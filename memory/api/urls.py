"""The agents' API, version 1."""

from django.urls import path
from drf_spectacular.views import SpectacularAPIView

from memory.api.views import distillations, erasing, facts, lessons, loop, preferences
from memory.api.views.docs import docs, docs_script

urlpatterns = [
    path("interactions/", loop.InteractionsView.as_view(), name="interactions"),
    path("interactions/<uuid:pk>/", loop.InteractionView.as_view(), name="interaction"),
    path("interactions/<uuid:pk>/outcomes/", loop.InteractionOutcomesView.as_view(), name="interaction-outcomes"),
    path("outcomes/", loop.OutcomesView.as_view(), name="outcomes"),
    path("retrieve/", loop.RetrieveView.as_view(), name="retrieve"),
    path("lessons/", lessons.LessonsView.as_view(), name="lessons"),
    path("lessons/<uuid:pk>/", lessons.LessonView.as_view(), name="lesson"),
    path("lessons/<uuid:pk>/evidence/", lessons.LessonEvidenceView.as_view(), name="lesson-evidence"),
    path("lessons/<uuid:pk>/history/", lessons.LessonHistoryView.as_view(), name="lesson-history"),
    path("lessons/<uuid:pk>/neighbours/", lessons.LessonNeighboursView.as_view(), name="lesson-neighbours"),
    path("preferences/", preferences.PreferencesView.as_view(), name="preferences"),
    path("preferences/<uuid:pk>/refinements/", preferences.RefinementsView.as_view(), name="refinements"),
    path("refinements/<uuid:pk>/rollback/", preferences.RollbackView.as_view(), name="rollback"),
    path("facts/", facts.FactsView.as_view(), name="facts"),
    path("facts/<uuid:pk>/", erasing.FactView.as_view(), name="fact"),
    path("facts/<uuid:pk>/retract/", facts.RetractView.as_view(), name="fact-retract"),
    path("facts/<uuid:pk>/correct/", facts.CorrectView.as_view(), name="fact-correct"),
    path("distillations/", distillations.DistillationsView.as_view(), name="distillations"),
    path("distillations/<uuid:pk>/retry/", distillations.DistillationRetryView.as_view(), name="distillation-retry"),
    path("distillations/<uuid:pk>/cancel/", distillations.DistillationCancelView.as_view(), name="distillation-cancel"),
    path("projects/<uuid:pk>/", erasing.ProjectView.as_view(), name="project"),
    path("schema/", SpectacularAPIView.as_view(), name="schema"),
    path("docs/", docs, name="docs"),
    path("docs/script.js", docs_script, name="docs-script"),
]
