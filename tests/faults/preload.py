"""`celery worker --include faults.preload`: loads the model's SDK at the start, as `workers.turn` does for the queue `turns`."""

from models.settings.providers import registry
from workers.providers import provider_for

provider_for(registry()[0], None)
