package run

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weft-sdn/weft"
	"github.com/weft-sdn/weft/cmd/weft/planner"
	"github.com/weft-sdn/weft/deploy"
	"github.com/weft-sdn/weft/deploy/config"
	"github.com/weft-sdn/weft/deploy/local"
	"github.com/weft-sdn/weft/deploy/members"
	"github.com/weft-sdn/weft/internal/backoff"
	"github.com/weft-sdn/weft/plan"
	"github.com/weft-sdn/weft/services"
	"github.com/weft-sdn/weft/services/gateway"
	"github.com/weft-sdn/weft/transport"
)

// alone is a controller of one process: a plan of one worker, which nobody has
// to know of.
type alone struct {
	all       []weft.Spec // of this build
	specs     []weft.Spec // that run
	plan      *plan.Plan  // without its configuration
	given     config.Given
	overrides []config.Override
}

// alone returns what to run: of all services the chosen ones, with the settings
// of file and flags.
func (o *UpOptions) alone(all []weft.Spec, listen []string) (*alone, error) {
	a := &alone{all: all, specs: all, given: config.Given{Source: "defaults of the services"}}
	settings := &config.Settings{}
	var pipeline []string
	if o.Config != "" {
		file, err := config.Load(o.Config)
		if err != nil {
			return nil, err
		}
		settings, pipeline = file.Settings, file.Pipeline
		a.given = config.Given{Sections: file.Document.Sections, Text: file.Text, Source: "configuration file " + o.Config, Named: true}
		if a.specs, err = file.Select(all); err != nil {
			return nil, err
		}
	}
	if len(o.Services) > 0 {
		chosen := slices.Clone(o.Services)
		if o.HTTP != "" {
			chosen = append(chosen, "gateway")
		}
		if o.ryu != "" && !slices.Contains(chosen, "ryu") {
			chosen = append(chosen, "ryu")
		}
		known := names(all)
		for _, name := range chosen {
			if !slices.Contains(known, name) {
				return nil, fmt.Errorf("--services: unknown service %q; allowed: %s", name, strings.Join(known, ", "))
			}
		}
		a.specs = slices.DeleteFunc(slices.Clone(all), func(s weft.Spec) bool { return !slices.Contains(chosen, s.Name) })
	}
	set := slices.Clone(o.Set)
	if o.HTTP != "" {
		set = slices.Insert(set, 0, "gateway.listen="+o.HTTP)
	}
	if o.ryu != "" {
		set = slices.Insert(set, 0, "ryu.listen="+o.ryu)
	}
	if len(listen) > 0 {
		list, err := json.Marshal(listen)
		if err != nil {
			return nil, err
		}
		set = slices.Insert(set, 0, "southbound.listen="+string(list))
	}
	var errs []error
	for _, assignment := range set {
		errs = append(errs, settings.Set(assignment))
	}
	errs = append(errs, settings.Check(a.specs))
	if len(o.Services) == 0 {
		errs = append(errs, config.CheckSpecs(a.specs))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	a.overrides = overrides(set)
	a.plan = plan.Single(names(a.specs))
	a.plan.Partial, a.plan.Pipeline = len(o.Services) > 0, pipeline
	return a, a.plan.Check(all)
}

// part returns what the part of the controller that stays root knows.
func (o *UpOptions) part(args []string) (c partConfig, err error) {
	if os.Geteuid() != 0 {
		return c, nil
	}
	var p *plan.Plan
	if listen, wrong := ListenAddresses(o.Listen); wrong != nil {
		return c, nil // as the controller says
	} else if len(args) > 0 {
		p, err = planner.ReadPlan(args[0])
	} else if a, wrong := o.alone(services.All(gateway.Process{}), listen); wrong != nil {
		err = wrong
	} else {
		p = a.plan.WithConfig(a.given.Sections)
	}
	if err == nil {
		c.read(p, o.Set)
	}
	return c, err
}

func names(specs []weft.Spec) (list []string) {
	for _, s := range specs {
		list = append(list, s.Name)
	}
	return list
}

// join brings the plan into force with the configuration that counts, and makes
// the node that carries it out.
func (a *alone) join(ctx context.Context, store local.Store, metrics *prometheus.Registry, tracer local.Tracer, log *slog.Logger, kept *keptLog, data string) (*deploy.Node, error) {
	configs, err := config.Open(ctx, store)
	if err != nil {
		return nil, err
	}
	chosen, err := configs.Choose(ctx, a.given)
	if err != nil {
		return nil, err
	}
	if chosen.Kept() {
		if err := a.fits(chosen, log); err != nil {
			return nil, err
		}
	}
	p := a.plan.WithConfig(chosen.Sections)
	directory, err := members.OpenDirectory(ctx, store)
	if err != nil {
		return nil, err
	}
	if err := directory.Take(ctx, p, a.all); err != nil {
		return nil, err
	}
	if err := configs.Start(ctx, chosen, time.Now()); err != nil {
		return nil, err
	}
	log.Info("configuration in force: " + chosen.Why)
	kept.process = p.Workers[0].Name
	return deploy.Join(ctx, deploy.NodeConfig{
		Process: p.Workers[0].Name, Version: Build().Version, Specs: a.all, Store: store, Settings: a.overrides,
		Registry: metrics, Gatherer: metrics, Tracer: tracer, Log: log, Logs: kept.read, Alone: true, Scratch: scratchDirectory(data),
		Listen: func(transport.Handler) (map[string]string, io.Closer, error) { return nil, closers{}, nil },
	})
}

// fits checks the configuration of an earlier run. What it says of services that
// are left out now on purpose does not count.
func (a *alone) fits(chosen *config.Chosen, log *slog.Logger) error {
	if a.plan.Partial {
		chosen.Sections = slices.DeleteFunc(chosen.Sections, func(s plan.Section) bool {
			if !a.plan.Has(s.Service) {
				log.Warn("the configuration in force has settings for a service that does not run; they do not count", "service", s.Service)
			}
			return !a.plan.Has(s.Service)
		})
	}
	source := fmt.Sprintf("configuration %d", chosen.Number)
	if err := config.CheckDocument(source, &plan.Document{Sections: chosen.Sections}, a.specs, a.overrides...); err != nil {
		return fmt.Errorf("%w\nconfiguration %d was applied while the controller ran (%s) and does not fit it now; start it with another, weft up --config FILE", err, chosen.Number, chosen.Source)
	}
	return nil
}

// ready waits until all services run; false if ctx ends first.
func ready(ctx context.Context, node *deploy.Node) bool {
	for node.Ready() != nil {
		if backoff.Sleep(ctx, time.Millisecond) != nil {
			return false
		}
	}
	return true
}
