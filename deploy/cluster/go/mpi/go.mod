module fairlead/mpi

go 1.24.4

require github.com/kubeflow/mpi-operator v0.6.0
