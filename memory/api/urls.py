"""The agents' API, version 1."""

from django.urls import path
from drf_spectacular.views import SpectacularAPIView

from memory.api.views import (
    distillations,
    erasing,
    export,
    facts,
    governing,
    health_report,
    lessons,
    loop,
    preferences,
    sessions,
    tasks,
)
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
    path("sessions/", sessions.SessionsView.as_view(), name="sessions"),
    path("sessions/<uuid:pk>/", sessions.SessionView.as_view(), name="session"),
    path("sessions/<uuid:pk>/turn/", sessions.SessionTurnView.as_view(), name="session-turn"),
    path("tasks/", tasks.TasksView.as_view(), name="tasks"),
    path("tasks/<uuid:pk>/", tasks.TaskView.as_view(), name="task"),
    path("tasks/<uuid:pk>/events/", tasks.TaskEventsView.as_view(), name="task-events"),
    path("tasks/<uuid:pk>/dependencies/", tasks.TaskDependenciesView.as_view(), name="task-dependencies"),
    path("tasks/<uuid:pk>/dependencies/<uuid:depends_on>/", tasks.TaskDependencyView.as_view(), name="task-dependency"),
    path("health/", health_report.HealthView.as_view(), name="health"),
    path("export/", export.ExportView.as_view(), name="export"),
    path("distillations/", distillations.DistillationsView.as_view(), name="distillations"),
    path("distillations/<uuid:pk>/retry/", distillations.DistillationRetryView.as_view(), name="distillation-retry"),
    path("distillations/<uuid:pk>/cancel/", distillations.DistillationCancelView.as_view(), name="distillation-cancel"),
    path("contradictions/", governing.ContradictionsView.as_view(), name="contradictions"),
    path("prune/plan/", governing.PrunePlanView.as_view(), name="prune-plan"),
    path("prune/apply/", governing.PruneApplyView.as_view(), name="prune-apply"),
    path("projects/<uuid:pk>/", erasing.ProjectView.as_view(), name="project"),
    path("schema/", SpectacularAPIView.as_view(), name="schema"),
    path("docs/", docs, name="docs"),
    path("docs/script.js", docs_script, name="docs-script"),
]
