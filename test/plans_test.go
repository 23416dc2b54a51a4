package test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/weft-sdn/weft"
	"github.com/weft-sdn/weft/deploy"
	"github.com/weft-sdn/weft/deploy/config"
	"github.com/weft-sdn/weft/deploy/members"
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

// single is a plan of one worker with all services, as weft up runs without a
// plan.
func single(specs []weft.Spec) *plan.Plan {
	var names []string
	for _, s := range specs {
		names = append(names, s.Name)
	}
	return plan.Single(names)
}

// split is a plan in which every service has a worker of its own, connected by
// sockets as processes are.
func split(specs []weft.Spec) *plan.Plan {
	p := single(specs)
	p.Name, p.Events, p.Workers = "split", plan.GRPC, nil
	for _, s := range specs {
		w := plan.Single([]string{s.Name}).Workers[0]
		w.Name = s.Name
		p.Workers = append(p.Workers, w)
	}
	return p
}

// run runs the workers of a plan, each in a node of its own.
func (c *controller) run(ctx context.Context, p *plan.Plan, set []string, log *slog.Logger) <-chan error {
	c.t.Helper()
	directory, err := members.OpenDirectory(ctx, c.store)
	if err != nil {
		c.t.Fatal(err)
	}
	old, revision, err := directory.Current(ctx)
	if err != nil {
		c.t.Fatal(err)
	}
	next, err := members.Succeed(old, p, c.known)
	if err == nil {
		err = directory.Put(ctx, next, revision)
	}
	if err != nil {
		c.t.Fatal(err)
	}
	all := make(chan error, len(p.Workers))
	for i := range p.Workers {
		w := &p.Workers[i]
		own := slices.DeleteFunc(slices.Clone(set), func(s string) bool {
			service, _, _ := strings.Cut(s, ".")
			return !slices.Contains(w.Services, service)
		})
		n := c.node(ctx, w.Name, c.known, own, log)
		go func() { all <- n.Run(ctx) }()
	}
	ended := make(chan error, 1)
	go func() {
		var errs []error
		for range p.Workers {
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
	as := deploy.NodeConfig{
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
		as.Settings = append(as.Settings, config.Override(s))
	}
	n, err := deploy.Join(ctx, as)
	if err != nil {
		c.t.Fatal(err)
	}
	c.nodes = append(c.nodes, n)
	return n
}
