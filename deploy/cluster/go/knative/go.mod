module fairlead/knative

go 1.24.4

require knative.dev/serving v0.46.0
