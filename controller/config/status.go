package config

import (
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
)

// trainJobStatus is the one feature gate that there is.
const trainJobStatus = "TrainJobStatus"

func (o *Options) addStatusFlags(flags *pflag.FlagSet) {
	flags.Func("feature-gates", "name=true or name=false, several with commas between them; there is "+trainJobStatus+
		": a server to which trainers report how far they are", o.parseGates)
	flags.IntVar(&o.StatusServerPort, "status-server-port", o.StatusServerPort,
		"port of the status server, at --webhook-host")
	flags.StringVar(&o.StatusServerURL, "status-server-url", o.StatusServerURL,
		"address of the status server that pods are told, such as https://host:port; empty for the webhooks' Service")
}

// parseGates switches the feature gates that a flag names.
func (o *Options) parseGates(text string) error {
	for gate := range strings.SplitSeq(text, ",") {
		name, value, _ := strings.Cut(gate, "=")
		on, err := strconv.ParseBool(strings.TrimSpace(value))
		if err != nil {
			return fmt.Errorf("%s must be name=true or name=false", gate)
		}
		if err = o.setGate(strings.TrimSpace(name), &on); err != nil {
			return err
		}
	}
	return nil
}

// setGate switches a feature gate; an unknown one is an error, because it would have no effect.
func (o *Options) setGate(name string, on *bool) error {
	if name != trainJobStatus {
		return fmt.Errorf("%s is no feature gate: there is %s", name, trainJobStatus)
	}
	set(&o.TrainJobStatus, on)
	return nil
}

// validateStatus returns the first fault of the status server's options, if it is enabled.
func (o *Options) validateStatus() error {
	if !o.TrainJobStatus {
		return nil
	}
	if o.StatusServerPort < 1 || o.StatusServerPort > maxPort {
		return fmt.Errorf("--status-server-port=%d: must be a port", o.StatusServerPort)
	}
	if o.WebhookPort == 0 {
		return errors.New(
			"--feature-gates=" + trainJobStatus + "=true: must not be with --webhook-port=0, because the " +
				"status server has the webhooks' certificate",
		)
	}
	if o.StatusServerURL == "" {
		return nil
	}
	address, err := url.Parse(o.StatusServerURL)
	if err != nil || address.Scheme != "https" || address.Host == "" || o.StatusServerURL != "https://"+address.Host {
		return fmt.Errorf("--status-server-url=%s: must be https://host:port and no more", o.StatusServerURL)
	}
	return nil
}
