// Package etcd runs one etcd member inside the embedded cluster's multi-call binary.
package etcd

import (
	"context"
	"fmt"
	"net/url"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/embed"
)

// NewCommand returns a command that serves one etcd member until ctx ends. The data are those of a
// laboratory: writes are not synced to disk, because a cluster that is thrown away needs no crash safety
// and fsync dominates the start-up of a control plane on a shared disk.
func NewCommand(ctx context.Context) *cobra.Command {
	var dir, clientURL, peerURL string
	command := &cobra.Command{
		Use:           "etcd",
		Short:         "Serve one etcd member for the embedded cluster",
		Args:          cobra.NoArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(*cobra.Command, []string) error {
			return serve(ctx, dir, clientURL, peerURL)
		},
	}
	flags := command.Flags()
	flags.StringVar(&dir, "data-dir", "", "directory that holds the data")
	flags.StringVar(&clientURL, "listen-client-url", "", "URL on which clients are served")
	flags.StringVar(&peerURL, "listen-peer-url", "", "URL on which a peer would be served")
	return command
}

func serve(ctx context.Context, dir, clientURL, peerURL string) error {
	client, err := url.Parse(clientURL)
	if err != nil {
		return fmt.Errorf("parsing --listen-client-url: %w", err)
	}
	peer, err := url.Parse(peerURL)
	if err != nil {
		return fmt.Errorf("parsing --listen-peer-url: %w", err)
	}
	config := embed.NewConfig()
	config.Dir = dir
	config.ListenClientUrls, config.AdvertiseClientUrls = []url.URL{*client}, []url.URL{*client}
	config.ListenPeerUrls, config.AdvertisePeerUrls = []url.URL{*peer}, []url.URL{*peer}
	config.InitialCluster = config.InitialClusterFromName(config.Name)
	config.UnsafeNoFsync = true
	config.LogLevel = "warn"

	member, err := embed.StartEtcd(config)
	if err != nil {
		return fmt.Errorf("starting etcd in %s: %w", dir, err)
	}
	defer member.Close()
	select {
	case <-ctx.Done():
		return nil
	case err := <-member.Err():
		return fmt.Errorf("serving etcd: %w", err)
	}
}
