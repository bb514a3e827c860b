// Kubeflow's training operator: its controllers and its webhooks as they are, with the certificate of this cluster. Its
// own main makes one and waits until a pod's volume holds it; here it runs in no pod.
package main

import (
	"flag"

	kubeflow "github.com/kubeflow/training-operator/pkg/apis/kubeflow.org/v1"
	"github.com/kubeflow/training-operator/pkg/config"
	controllers "github.com/kubeflow/training-operator/pkg/controller.v1"
	"github.com/kubeflow/training-operator/pkg/controller.v1/common"
	"github.com/kubeflow/training-operator/pkg/webhooks"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
)

// The MPI operator has a newer version of its job and runs beside this one.
var kinds = []string{kubeflow.PyTorchJobKind, kubeflow.TFJobKind, kubeflow.XGBoostJobKind, kubeflow.JAXJobKind}

func main() {
	port := flag.Int("webhook-port", 9643, "port of the webhooks")
	folder := flag.String("certificates", "", "folder with tls.crt and tls.key")
	probes := flag.String("health-probe-bind-address", ":8114", "address of the checks")
	waiting := flag.String("pytorch-init-container-template-file", "", "what PyTorch's workers wait in for their master")
	flag.Parse()
	config.Config.PyTorchInitContainerTemplateFile = *waiting
	ctrl.SetLogger(zap.New())
	scheme := runtime.NewScheme()
	utilruntime.Must(clientscheme.AddToScheme(scheme))
	utilruntime.Must(kubeflow.AddToScheme(scheme))
	manager, err := ctrl.NewManager(ctrl.GetConfigOrDie(), ctrl.Options{
		Scheme:                 scheme,
		Metrics:                server.Options{BindAddress: "0"},
		HealthProbeBindAddress: *probes,
		WebhookServer:          webhook.NewServer(webhook.Options{Port: *port, CertDir: *folder}),
	})
	utilruntime.Must(err)
	for _, kind := range kinds {
		utilruntime.Must(controllers.SupportedSchemeReconciler[kind](manager, common.GenNonGangSchedulerSetupFunc(), 2))
		utilruntime.Must(webhooks.SupportedSchemeWebhook[kind](manager))
	}
	utilruntime.Must(manager.AddReadyzCheck("webhooks", manager.GetWebhookServer().StartedChecker()))
	utilruntime.Must(manager.AddHealthzCheck("alive", healthz.Ping))
	utilruntime.Must(manager.Start(ctrl.SetupSignalHandler()))
}
