"""Uses Fairlead's Python client: submit a training with a typed spec, follow its output, wait for its end."""

import fairlead
from fairlead import specs

with fairlead.Client() as client:
    spec = specs.TrainingSpec(image="fairlead.local/host", command="echo", args="'hello from the SDK'")
    job = client.submit(spec)
    for line in job.follow():
        print(line)
    print(job.wait(timeout=60).phase)
