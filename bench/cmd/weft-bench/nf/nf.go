// Package nf is the commands weft nf: the functions of a simulated 5G core.
//
// Only cmd/weft-bench and its packages import it.
package nf

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"time"

	"github.com/spf13/cobra"

	"github.com/weft-sdn/weft/bench/nf"
	"github.com/weft-sdn/weft/cmd/weft/cli"
	"github.com/weft-sdn/weft/sbi"
)

// Command is `weft nf`.
func Command() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "nf",
		GroupID: "work",
		Short:   "Run a network function: of a simulated 5G core, or an intrusion detection",
		Long: `Run a network function of a simulated 5G core: an NRF as in TS 29.510, or an AMF,
SMF, AUSF, UDM or PCF that registers with it, is discovered by it, and exchanges
the messages of attachments and detachments with the others; or a UDR, for a UDM
that is real. All of it is simulated: no radio, no cryptography, no subscriber.
Answers say so in the header Server, and in X-Weft-Instance which instance gives
them.

Each listens at the first address of its host, port 7777, speaks HTTP/2 with
prior knowledge and HTTP/1.1 or, with --certificate, TLS, and runs until it is
interrupted; then it deregisters.`,
		Example: `  weft lab exec h1 -- weft nf nrf
  weft lab exec h2 -- weft nf smf --nrf http://10.0.0.1:7777
  weft nf nrf --listen 127.0.0.1:7777
  weft nf amf --listen 127.0.0.1:7778 --nrf http://127.0.0.1:7777`,
	}
	cmd.AddCommand(nrfCommand())
	for _, of := range []sbi.NFType{sbi.AMF, sbi.SMF, sbi.AUSF, sbi.UDM, sbi.PCF, nf.UDR} {
		cmd.AddCommand(instanceCommand(of))
	}
	cmd.AddCommand(agentCommand(), idsCommand())
	return cmd
}

// place is the flags that all have.
type place struct {
	listen string
	tls    nf.TLS
	http1  bool
}

func (p *place) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&p.listen, "listen", ":7777", "listen at HOST:PORT; without HOST, at the first address of this host that is not a loopback one")
	f.StringVar(&p.tls.Certificate, "certificate", "", "speak TLS, with the certificate in FILE")
	f.StringVar(&p.tls.Key, "key", "", "the certificate's key, in FILE")
	f.StringVar(&p.tls.Authority, "authority", "", "the certificates in FILE are those of whom certificates of others must be, clients included")
	f.BoolVar(&p.http1, "http1", false, "ask others by HTTP/1.1 instead of HTTP/2")
}

// resolve completes the address, and checks the flags.
func (p *place) resolve(cmd *cobra.Command) error {
	if (p.tls.Certificate == "") != (p.tls.Key == "") {
		return cli.Usagef(cmd, "give --certificate and --key together")
	}
	host, port, err := net.SplitHostPort(p.listen)
	if err != nil {
		return cli.Usagef(cmd, "--listen %q: want HOST:PORT or :PORT", p.listen)
	}
	if host == "" {
		a, err := nf.HostAddress()
		if err != nil {
			return err
		}
		p.listen = net.JoinHostPort(a.String(), port)
	}
	return nil
}

// logger returns where a function says what happens.
func logger(cmd *cobra.Command) *slog.Logger {
	return slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), nil))
}

func nrfCommand() *cobra.Command {
	var p place
	cfg := nf.DefaultRepository()
	cmd := &cobra.Command{
		Use:   "nrf",
		Short: "Run a simulated NRF",
		Long: `Run a simulated NRF: registration, heartbeats, subscriptions to changes and
discovery as in TS 29.510 (Nnrf_NFManagement and Nnrf_NFDiscovery). What is
registered is forgotten when it ends.

An instance whose heartbeat is late by more than --margin is suspended, so that
nobody discovers it, and removed when --removal has passed, too.`,
		Example: `  weft nf nrf
  weft nf nrf --listen 10.0.0.1:7777 --validity 10s --heartbeat 5s --margin 2s`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := cfg.Validate(); err != nil {
				return cli.Usagef(cmd, "%w", err)
			}
			if err := p.resolve(cmd); err != nil {
				return err
			}
			ctx, stop := cli.Signals(cmd)
			defer stop()
			e, err := nf.Listen(p.listen, p.tls, p.http1)
			if err != nil {
				return err
			}
			log := logger(cmd)
			n := nf.NewNRF(e.Root(), cfg, time.Now, log)
			go n.Run(ctx, e.Client)
			log.Info("a simulated NRF listens", "at", e.Root())
			return e.Serve(ctx, n.Handler())
		},
	}
	p.flags(cmd)
	f := cmd.Flags()
	f.DurationVar(&cfg.Heartbeat, "heartbeat", cfg.Heartbeat, "time between heartbeats of an instance")
	f.DurationVar(&cfg.Margin, "margin", cfg.Margin, "by how much a heartbeat may be late before its instance is suspended")
	f.DurationVar(&cfg.Removal, "removal", cfg.Removal, "how long after that it is removed")
	f.DurationVar(&cfg.Validity, "validity", cfg.Validity, "how long what is discovered may be kept")
	f.IntVar(&cfg.Instances, "instances", cfg.Instances, "most instances that may be registered")
	f.IntVar(&cfg.Subscriptions, "subscriptions", cfg.Subscriptions, "most subscriptions that there may be")
	return cmd
}

func agentCommand() *cobra.Command {
	var p place
	var to []string
	cmd := &cobra.Command{
		Use:   "agent",
		Short: "Run a reverse proxy for the messages of a core",
		Long: `Run a reverse proxy, such as an agent of a service communication proxy is at the
least: it passes requests on to an address or, with several, to each in turn.
It stands beside nginx, HAProxy and Envoy in comparisons.`,
		Example: `  weft nf agent --to http://10.0.0.5:7777
  weft nf agent --listen 127.0.0.1:7779 --to http://10.0.0.5:7777 --to http://10.0.0.6:7777`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := p.resolve(cmd); err != nil {
				return err
			}
			ctx, stop := cli.Signals(cmd)
			defer stop()
			e, err := nf.Listen(p.listen, p.tls, p.http1)
			if err != nil {
				return err
			}
			log := logger(cmd)
			h, err := nf.Agent(e.Client, to, log)
			if err != nil {
				e.Close()
				return cli.Usagef(cmd, "%w", err)
			}
			log.Info("an agent listens", "at", e.Root(), "to", to)
			return e.Serve(ctx, h)
		},
	}
	p.flags(cmd)
	cmd.Flags().StringSliceVar(&to, "to", nil, "pass requests on to URL; may be repeated")
	_ = cmd.MarkFlagRequired("to") // the flag is there
	return cmd
}

// await runs something beside something else, and ends both when one ends.
func await(ctx context.Context, main, beside func(context.Context) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	done := make(chan error, 1)
	go func() {
		defer cancel()
		done <- main(ctx)
	}()
	err := beside(ctx)
	cancel()
	if failed := <-done; failed != nil {
		return failed
	}
	if err != nil {
		return fmt.Errorf("attachments: %w", err)
	}
	return nil
}
