// Kubeflow's MPI operator: its controller as it is. Its own main answers checks on a port that is fixed and taken here,
// and elects a leader among several; this is the only one.
package main

import (
	"context"
	"flag"
	"net/http"

	"github.com/kubeflow/mpi-operator/cmd/mpi-operator/app/options"
	"github.com/kubeflow/mpi-operator/pkg/client/clientset/versioned"
	"github.com/kubeflow/mpi-operator/pkg/client/informers/externalversions"
	"github.com/kubeflow/mpi-operator/pkg/controller"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

func main() {
	told := options.NewServerOption()
	told.AddFlags(flag.CommandLine)
	probes := flag.String("health-probe-bind-address", ":8115", "address of the checks")
	flag.Parse()
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
		clientcmd.NewDefaultClientConfigLoadingRules(), nil).ClientConfig()
	utilruntime.Must(err)
	config.QPS, config.Burst = float32(told.QPS), told.Burst
	client, jobs := kubernetes.NewForConfigOrDie(config), versioned.NewForConfigOrDie(config)
	own, theirs := informers.NewSharedInformerFactory(client, 0), externalversions.NewSharedInformerFactory(jobs, 0)
	core := own.Core().V1()
	operator, err := controller.NewMPIJobController(context.Background(), client, jobs, nil, nil, core.ConfigMaps(),
		core.Secrets(), core.Services(), own.Batch().V1().Jobs(), core.Pods(),
		own.Scheduling().V1().PriorityClasses(), theirs.Kubeflow().V2beta1().MPIJobs(), told)
	utilruntime.Must(err)
	stop := make(chan struct{})
	own.Start(stop)
	theirs.Start(stop)
	http.HandleFunc("/readyz", func(answer http.ResponseWriter, _ *http.Request) { answer.WriteHeader(http.StatusOK) })
	go func() { utilruntime.Must(http.ListenAndServe(*probes, nil)) }()
	utilruntime.Must(operator.Run(2, stop))
}
