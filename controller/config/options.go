package config

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"

	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
	"github.com/lockstep-project/lockstep/controller/class"
	"github.com/lockstep-project/lockstep/manifests/gangapi"
)

// Options are the controller's options.
type Options struct {
	// Kubeconfig is a file; empty means KUBECONFIG, then the service account, then ~/.kube/config.
	Kubeconfig string
	// Namespace is the namespace of the lease and of the webhooks' Service and Secret, and that in which the probe at
	// start asks for a PodGroup without creating it.
	Namespace string
	// Namespaces are the namespaces of this controller's TrainJobs; empty for all. Outside of them it reads and writes
	// only cluster-scoped objects and those in its own namespace.
	Namespaces []string
	// Manage selects the TrainJobs that the controller handles: a class.Choice.
	Manage string
	// NodeShapes are the resources of nodes that autoscalers can make. NodesComplete is set if there will be no other
	// nodes than these and those of the cluster.
	NodeShapes    []corev1.ResourceList
	NodesComplete bool
	// TakeOver is the namespace of a Kubeflow Trainer; its lease is then held beside our own; empty for none.
	TakeOver string
	// LeaderElect lets several replicas run, one of them active. Off starts a second faster.
	LeaderElect bool
	// MetricsBindAddress is the address of the metrics; "0" switches them off.
	MetricsBindAddress string
	// MetricsSecure serves metrics with TLS, to clients that the cluster authenticates and authorizes to get /metrics.
	// Off serves them to every client, in the clear.
	MetricsSecure bool
	// HealthProbeBindAddress is the address of healthz and readyz; "0" switches them off.
	HealthProbeBindAddress string
	// GangDefault is "on" or "off": whether a job without its own setting is a gang.
	GangDefault string
	// GangAPI is the API of the gangs; empty for that of the previous start, or else the best that the cluster serves.
	GangAPI gangapi.API
	// KueueCheckAfter is the time that a job which Kueue admitted may wait for nodes, where an AdmissionCheck of
	// Lockstep's is in its queue; 0 answers no AdmissionChecks.
	KueueCheckAfter time.Duration
	// Workers is the number of TrainJobs that are reconciled at a time. More wait less behind slow API calls.
	Workers int
	// Verbosity is the level of logs: 2 decisions, 4 candidates.
	Verbosity int
	// GuardPatience bounds the test of the admission policies at the start. The controller ends if one does not hold by
	// then.
	GuardPatience time.Duration

	// WebhookHost is the address on which webhooks are served; empty means all. With Self it is also a name in the
	// certificate, so that replicas which share a Secret need the same one.
	WebhookHost string
	// WebhookPort is the port on which webhooks are served; 0 switches them off.
	WebhookPort int
	// WebhookCertDir holds tls.crt and tls.key with External.
	WebhookCertDir string
	// CertManagement is Self or External.
	CertManagement string
	// WebhookService and WebhookSecret are names in Namespace: the Service that the webhook configurations name, and
	// the Secret with the certificates. Only the file can change them, and then the roles must allow the other Secret.
	WebhookService, WebhookSecret string

	// TrainJobStatus is the feature gate that runs the status server and lets pods know of it.
	TrainJobStatus bool
	// StatusServerPort is the port on which it is served, at WebhookHost and with the webhooks' certificate.
	StatusServerPort int
	// StatusServerURL is the address of the status server in pods, without a path; empty means WebhookService at
	// StatusServerPort.
	StatusServerURL string
	// StatusServerQueriesPerSecond and StatusServerBurst bound its own calls to the API server, for writes and for
	// proofs of identity each; 0 means 5 and 10. Only the file can change them.
	StatusServerQueriesPerSecond float32
	StatusServerBurst            int

	// QueriesPerSecond and Burst bound the calls to the API server. Its own fairness protects it; these limits only
	// stop a controller that runs wild. Only the file can change them.
	QueriesPerSecond float32
	Burst            int
	// Unused are the fields of the file that are known and have no effect, by path, in order.
	Unused []string
}

// The values of Options.CertManagement.
const (
	// Self means that the controller makes the certificate of its webhooks, renews it, and writes the caBundle of the
	// webhook configurations.
	Self = "self"
	// External means that another party maintains the certificate files in WebhookCertDir, and the caBundle.
	External = "external"
)

const maxPort = 65535

// Default returns the options of a controller that was given none.
func Default() Options {
	return Options{
		Namespace:              "lockstep-system",
		MetricsBindAddress:     ":8443",
		MetricsSecure:          true,
		HealthProbeBindAddress: ":8081",
		GangDefault:            "off",
		Manage:                 string(class.All),
		Workers:                10,
		GuardPatience:          30 * time.Second,
		WebhookPort:            9443,
		WebhookCertDir:         "/tmp/k8s-webhook-server/serving-certs",
		CertManagement:         Self,
		WebhookService:         "lockstep-controller-webhook",
		WebhookSecret:          "lockstep-webhook-cert",
		QueriesPerSecond:       200,
		Burst:                  400,

		StatusServerPort:             10443,
		StatusServerQueriesPerSecond: 500,
		StatusServerBurst:            1000,
	}
}

var (
	// ErrHelp indicates that help was requested, and written.
	ErrHelp = pflag.ErrHelp
	// ErrVersion indicates that the version was requested.
	ErrVersion = errors.New("the version was asked for")
)

// Parse reads options from a command line, and from the configuration file that it names. Flags win over the file. Help
// is written to out.
func Parse(arguments []string, out io.Writer) (Options, error) {
	options := Default()
	path, err := options.parseFlags(arguments, out)
	if err != nil {
		return options, err
	}
	if path != "" {
		// The file's values become the defaults of the flags, which are then read again.
		options = Default()
		if err = options.readFile(path); err != nil {
			return options, err
		}
		if _, err = options.parseFlags(arguments, out); err != nil {
			return options, err
		}
	}
	return options, options.Validate()
}

// parseFlags overwrites the options for which there is a flag, and returns the path of the configuration file.
func (o *Options) parseFlags(arguments []string, out io.Writer) (string, error) {
	flags := pflag.NewFlagSet("lockstep-controller", pflag.ContinueOnError)
	path := flags.String("config", "", "configuration file of Kubeflow Trainer ("+fileVersion+"); flags win over it")
	version := flags.Bool("version", false, "print the version and quit")
	o.addFlags(flags)
	o.addWebhookFlags(flags)
	o.addStatusFlags(flags)
	flags.Usage = func() {
		_, _ = fmt.Fprintf(out, "Usage: lockstep-controller [flags]\n\n%s", flags.FlagUsages())
	}
	if err := flags.Parse(arguments); err != nil {
		return "", err //nolint:wrapcheck // the flag's name is in it
	}
	if *version {
		return "", ErrVersion
	}
	if flags.NArg() > 0 {
		return "", fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	return *path, nil
}

func (o *Options) addFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.Kubeconfig, "kubeconfig", o.Kubeconfig,
		"kubeconfig file; without it KUBECONFIG, the service account or ~/.kube/config")
	flags.StringVar(
		&o.Namespace,
		"namespace",
		o.Namespace,
		"namespace of the lease, of the probe at start, and of the webhooks' Service and Secret",
	)
	flags.StringSliceVar(&o.Namespaces, "namespaces", o.Namespaces,
		"namespaces whose TrainJobs are reconciled, with commas between them; empty for all. "+
			"Roles and webhooks are for the same ones (the chart's value namespaces)")
	flags.StringVar(&o.Manage, "manage", o.Manage,
		"all: every TrainJob that names no other controller; chosen: those of namespaces and runtimes with the label "+
			trainerv1alpha1.LabelTrainer+"="+trainerv1alpha1.TrainerLockstep+", beside Kubeflow Trainer 2.3 or later")
	flags.StringVar(&o.TakeOver, "take-over", o.TakeOver,
		"namespace of Kubeflow Trainer: work only while holding its lease too, so that never both work")
	flags.BoolVar(&o.LeaderElect, "leader-elect", o.LeaderElect, "work only while holding the lease")
	flags.StringVar(&o.MetricsBindAddress, "metrics-bind-address", o.MetricsBindAddress,
		`address of the metrics; "0" for none`)
	flags.BoolVar(&o.MetricsSecure, "metrics-secure", o.MetricsSecure,
		"serve metrics with TLS, and only to users that may get /metrics; off serves them without TLS to any client")
	flags.StringVar(&o.HealthProbeBindAddress, "health-probe-bind-address", o.HealthProbeBindAddress,
		`address of healthz and readyz; "0" for none`)
	flags.StringVar(&o.GangDefault, "gang-default", o.GangDefault,
		"on or off: whether jobs are gangs unless they say otherwise")
	flags.Func(
		"gang-api",
		"API in which gangs are stored: native (scheduling.k8s.io), resources ("+gangapi.Group+"), or auto: that of the previous start, "+
			"or else native where the API server serves it (default auto)",
		func(text string) (err error) {
			o.GangAPI, err = gangapi.Parse(text)
			return err
		},
	)
	flags.Func(
		"node-shape",
		"resources of a node that an autoscaler can make, as in cpu=96,memory=1000Gi,nvidia.com/gpu=8; may be repeated",
		func(text string) error {
			shape, err := parseShape(text)
			o.NodeShapes = append(o.NodeShapes, shape)
			return err
		},
	)
	flags.BoolVar(&o.NodesComplete, "nodes-complete", o.NodesComplete,
		"make no pods for a gang with a member that fits neither an empty node of the cluster nor any --node-shape")
	flags.DurationVar(
		&o.KueueCheckAfter,
		"kueue-check-after",
		o.KueueCheckAfter,
		"answer Kueue's AdmissionChecks of controllerName lockstep.dev/nodes: an admitted job that waits for nodes longer than this is returned to "+
			"Kueue; 0 disables this",
	)
	flags.IntVar(&o.Workers, "workers", o.Workers, "TrainJobs reconciled at a time")
	flags.DurationVar(
		&o.GuardPatience,
		"guard-patience",
		o.GuardPatience,
		"how long the admission policies may take to be enforced at the start; the controller ends if one does not hold then",
	)
	flags.IntVarP(&o.Verbosity, "v", "v", o.Verbosity, "verbosity of logs: 2 for decisions, 4 for candidates")
}

func (o *Options) addWebhookFlags(flags *pflag.FlagSet) {
	flags.StringVar(
		&o.WebhookHost,
		"webhook-host",
		o.WebhookHost,
		"address on which webhooks are served, and with --cert-management=self a name in their certificate; empty for all",
	)
	flags.IntVar(&o.WebhookPort, "webhook-port", o.WebhookPort, "port of the webhooks; 0 for none")
	flags.StringVar(&o.WebhookCertDir, "webhook-cert-dir", o.WebhookCertDir,
		"folder with tls.crt and tls.key for --cert-management=external; they are read again when they change")
	flags.StringVar(&o.CertManagement, "cert-management", o.CertManagement,
		"self: make, keep and renew the certificate of the webhooks in a Secret, and write their caBundle; "+
			"external: another party does")
}

// Validate returns the first fault of the options.
func (o *Options) Validate() error {
	if o.GangDefault != "on" && o.GangDefault != "off" {
		return fmt.Errorf("--gang-default=%s: must be on or off", o.GangDefault)
	}
	if err := o.validateManage(); err != nil {
		return err
	}
	if o.Workers < 1 {
		return fmt.Errorf("--workers=%d: must be at least 1", o.Workers)
	}
	if o.KueueCheckAfter < 0 {
		return fmt.Errorf("--kueue-check-after=%s: must not be negative", o.KueueCheckAfter)
	}
	if o.GuardPatience < 0 {
		return fmt.Errorf("--guard-patience=%s: must not be negative", o.GuardPatience)
	}
	if o.Verbosity < 0 {
		return fmt.Errorf("--v=%d: must be at least 0", o.Verbosity)
	}
	if o.Namespace == "" {
		return errors.New("--namespace: must not be empty")
	}
	if err := o.validateNamespaces(); err != nil {
		return err
	}
	if o.WebhookPort < 0 || o.WebhookPort > maxPort {
		return fmt.Errorf("--webhook-port=%d: must be a port, or 0 for no webhooks", o.WebhookPort)
	}
	if o.CertManagement != Self && o.CertManagement != External {
		return fmt.Errorf("--cert-management=%s: must be %s or %s", o.CertManagement, Self, External)
	}
	if o.CertManagement == External && o.WebhookPort != 0 && o.WebhookCertDir == "" {
		return errors.New("--webhook-cert-dir: must not be empty with --cert-management=external")
	}
	return o.validateStatus()
}

// validateManage returns the first fault of the options about other controllers of TrainJobs.
func (o *Options) validateManage() error {
	switch {
	case o.Manage != string(class.All) && o.Manage != string(class.Chosen):
		return fmt.Errorf("--manage=%s: must be %s or %s", o.Manage, class.All, class.Chosen)
	case o.TakeOver == "":
		return nil
	case o.Manage == string(class.Chosen):
		return fmt.Errorf("--take-over=%s: must not be with --manage=%s, which leaves Kubeflow Trainer its lease",
			o.TakeOver, o.Manage)
	case !o.LeaderElect:
		return fmt.Errorf("--take-over=%s: needs --leader-elect", o.TakeOver)
	case len(o.Namespaces) > 0:
		return fmt.Errorf(
			"--take-over=%s: must not be with --namespaces: no controller would handle the TrainJobs of other namespaces; "+
				"--manage=%s works beside Kubeflow Trainer",
			o.TakeOver,
			class.Chosen,
		)
	}
	return nil
}
