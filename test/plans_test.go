package test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/weft-sdn/weft"
	"github.com/weft-sdn/weft/deploy"
	"github.com/weft-sdn/weft/plan"
	"github.com/weft-sdn/weft/transport"
	"github.com/weft-sdn/weft/transport/grpc"
	"github.com/weft-sdn/weft/transport/port"
	"github.com/weft-sdn/weft/transport/rest"
	"github.com/weft-sdn/weft/transport/ws"
)

// planVariable is the environment variable by which the tests of this package
// run over the plan single. The default is split, which has the stages of single
// and the calls between processes as well; make test-long runs them over both.
const planVariable = "WEFT_TEST_PLAN"

// single runs all services in one worker.
func (c *controller) single(ctx context.Context, specs []weft.Spec, set []string, log *slog.Logger) <-chan error {
	c.t.Helper()
	settings := &deploy.Settings{}
	for _, s := range set {
		if err := settings.Set(s); err != nil {
			c.t.Fatal(err)
		}
	}
	registry := prometheus.NewRegistry()
	c.registry = []prometheus.Gatherer{registry}
	w, err := deploy.New(deploy.Config{Specs: specs, Settings: settings, Store: c.store, Registry: registry, Log: log, Partial: len(specs) < len(c.known)})
	if err != nil {
		c.t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	return ended
}

// split runs every service in a node of its own, connected by sockets as
// processes are.
func (c *controller) split(ctx context.Context, specs []weft.Spec, set []string, log *slog.Logger) <-chan error {
	c.t.Helper()
	text := fmt.Sprintf("name: split\nevents: grpc\npartial: %v\nworkers:\n", len(specs) < len(c.known))
	for _, s := range specs {
		text += fmt.Sprintf("  %s: {services: [%s]}\n", s.Name, s.Name)
	}
	p, err := plan.Parse("split", []byte(text))
	if err != nil {
		c.t.Fatal(err)
	}
	directory, err := deploy.OpenDirectory(ctx, c.store)
	if err != nil {
		c.t.Fatal(err)
	}
	old, revision, err := directory.Current(ctx)
	if err != nil {
		c.t.Fatal(err)
	}
	next, err := deploy.Succeed(old, p, c.known)
	if err == nil {
		err = directory.Put(ctx, next, revision)
	}
	if err != nil {
		c.t.Fatal(err)
	}
	all := make(chan error, len(specs))
	for _, s := range specs {
		n := c.node(ctx, s.Name, c.known, set, log)
		go func() { all <- n.Run(ctx) }()
	}
	ended := make(chan error, 1)
	go func() {
		var errs []error
		for range specs {
			errs = append(errs, <-all)
		}
		ended <- errors.Join(errs...)
	}()
	return ended
}

// gather returns the figures of all processes.
func (c *controller) gather() (families []*dto.MetricFamily) {
	c.t.Helper()
	for _, r := range c.registry {
		list, err := r.Gather()
		if err != nil {
			c.t.Fatal(err)
		}
		families = append(families, list...)
	}
	return families
}

// node makes a process of a plan, in this process.
func (c *controller) node(ctx context.Context, name string, specs []weft.Spec, set []string, log *slog.Logger) *deploy.Node {
	registry := prometheus.NewRegistry()
	c.registry = append(c.registry, registry)
	config := deploy.NodeConfig{
		Process: name, Specs: specs, Store: c.store, Registry: registry, Gatherer: registry, Log: log.With("process", name),
		Transports: map[string]transport.Transport{"grpc": grpc.New(nil), "ws": ws.New(nil), "rest": rest.New(nil)},
		Listen: func(h transport.Handler) (map[string]string, io.Closer, error) {
			p, err := port.Listen("127.0.0.1:0", port.Config{Handler: h})
			if err != nil {
				return nil, nil, err
			}
			return map[string]string{"grpc": p.Address(), "ws": p.Address(), "rest": p.Address()}, p, nil
		},
	}
	for _, s := range set {
		service, _, _ := strings.Cut(s, ".")
		if service == name {
			config.Settings = append(config.Settings, deploy.Override(s))
		}
	}
	n, err := deploy.Join(ctx, config)
	if err != nil {
		c.t.Fatal(err)
	}
	return n
}
