package cluster

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"net"
	"strings"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	certutil "k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"

	"github.com/lockstep-project/lockstep/simulator/live/cluster/nvlink"
)

// The accounts of the run. Kueue's and Kubeflow Trainer's have the names of the ServiceAccounts that their manifests
// bind to ClusterRoles, and ours those of the chart's Deployments, so that the shipped roles alone determine their
// permissions.
const (
	adminUser   = "admin"
	kueueUser   = "system:serviceaccount:kueue-system:kueue-controller-manager"
	trainerUser = "system:serviceaccount:" + TrainerNamespace + ":" + trainerAccount
	guestUser   = "system:serviceaccount:" + GuestNamespace + ":guest"
)

// access holds the clients of the API server and their credentials: certificates, tokens and kubeconfigs, as files of
// the run.
type access struct {
	certDir, certFile, keyFile, authorityFile string
	certPEM                                   []byte
	accountKeyFile, tokenFile                 string

	adminKubeconfig, controllerKubeconfig, schedulerKubeconfig, kueueKubeconfig, trainerKubeconfig, guestKubeconfig string
	// For clients in this process: the administrator's, that of the player of NVIDIA's driver, and that of the others.
	admin, driver, drivers *rest.Config
}

// newAccess writes everything that authenticates in one run. One certificate serves every loopback listener: it holds
// its own authority, so that clients trust it and nothing else.
func newAccess(s *state, server, controller, scheduler string, names []string, addresses ...net.IP) (access, error) {
	loopback := append([]net.IP{net.IPv4(127, 0, 0, 1)}, addresses...)
	cert, key, err := certutil.GenerateSelfSignedCertKey("localhost", loopback, append([]string{"localhost"}, names...))
	if err != nil {
		return access{}, fmt.Errorf("making the serving certificate: %w", err)
	}
	accountKey, err := keyutil.MakeEllipticPrivateKeyPEM()
	if err != nil {
		return access{}, fmt.Errorf("making the service-account key: %w", err)
	}
	a := access{certDir: s.path("pki"), certPEM: cert}
	files := []struct {
		path    *string
		name    string
		content []byte
	}{
		{&a.certFile, "tls.crt", cert},
		{&a.authorityFile, "ca.crt", cert},
		{&a.keyFile, "tls.key", key},
		{&a.accountKeyFile, "sa.key", accountKey},
	}
	for _, file := range files {
		if *file.path, err = s.write(file.content, "pki", file.name); err != nil {
			return access{}, err
		}
	}
	return a, a.writeUsers(s, server, controller, scheduler)
}

// writeUsers makes a token for every account, the API server's token file, and a kubeconfig for each.
func (a *access) writeUsers(s *state, server, controller, scheduler string) error {
	var tokens strings.Builder
	users := []struct {
		name, groups string
		kubeconfig   *string
		path         []string
	}{
		{adminUser, "system:masters", &a.adminKubeconfig, []string{"kubeconfig"}},
		{
			controller,
			"system:serviceaccounts",
			&a.controllerKubeconfig,
			[]string{"config", "controller.kubeconfig"},
		},
		{scheduler, "system:serviceaccounts", &a.schedulerKubeconfig, []string{"config", "scheduler.kubeconfig"}},
		{kueueUser, "system:serviceaccounts", &a.kueueKubeconfig, []string{"config", "kueue.kubeconfig"}},
		{trainerUser, "system:serviceaccounts", &a.trainerKubeconfig, []string{"config", "trainer.kubeconfig"}},
		{guestUser, "system:serviceaccounts", &a.guestKubeconfig, []string{"config", "guest.kubeconfig"}},
	}
	// In this process, so without a file.
	a.driver, a.drivers = a.client(server, newToken(), 200), a.client(server, newToken(), 500)
	fmt.Fprintf(&tokens, "%s,%s,%s\n", a.driver.BearerToken, nvlink.User, nvlink.User)
	fmt.Fprintf(&tokens, "%s,%s,%s\n", a.drivers.BearerToken, driversUser, driversUser)
	for _, user := range users {
		token := newToken()
		fmt.Fprintf(&tokens, "%s,%s,%s,%q\n", token, user.name, user.name, user.groups)
		config := a.kubeconfig(server, user.name, token)
		content, err := clientcmd.Write(*config)
		if err != nil {
			return fmt.Errorf("encoding the kubeconfig of %s: %w", user.name, err)
		}
		if *user.kubeconfig, err = s.write(content, user.path...); err != nil {
			return err
		}
		if user.name == adminUser {
			a.admin = a.client(server, token, 500)
		}
	}
	var err error
	a.tokenFile, err = s.write([]byte(tokens.String()), "pki", "tokens.csv")
	return err
}

// client is access for a client in this process, with so many requests a second and twice as many at once.
func (a *access) client(server, token string, rate int) *rest.Config {
	return &rest.Config{
		Host: server, BearerToken: token, QPS: float32(rate), Burst: 2 * rate,
		TLSClientConfig: rest.TLSClientConfig{CAData: a.certPEM},
	}
}

func (a *access) kubeconfig(server, user, token string) *clientcmdapi.Config {
	config := clientcmdapi.NewConfig()
	config.Clusters["lockstep"] = &clientcmdapi.Cluster{Server: server, CertificateAuthorityData: a.certPEM}
	config.AuthInfos[user] = &clientcmdapi.AuthInfo{Token: token}
	config.Contexts["lockstep"] = &clientcmdapi.Context{Cluster: "lockstep", AuthInfo: user}
	config.CurrentContext = "lockstep"
	return config
}

// newToken is 128 bits of chance; crypto/rand does not fail.
func newToken() string {
	token := make([]byte, 16)
	_, _ = rand.Read(token)
	return hex.EncodeToString(token)
}
