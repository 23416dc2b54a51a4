package deploy

import (
	"errors"
	"io"
	"log/slog"
	"slices"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weft-sdn/weft"
	"github.com/weft-sdn/weft/deploy/apps"
	"github.com/weft-sdn/weft/deploy/config"
	"github.com/weft-sdn/weft/deploy/local"
	"github.com/weft-sdn/weft/deploy/members"
	"github.com/weft-sdn/weft/plan"
	"github.com/weft-sdn/weft/transport"
)

// NodeConfig says how a process takes part in a plan.
type NodeConfig struct {
	// Process is the name of the process: that of its instance in the plan,
	// unless a plan applied later has made another instance of it.
	Process string
	// Version is that of the binary.
	Version string
	// Specs are all services that the binary has.
	Specs []weft.Spec
	// Store holds the durable state, the plan in force and the directory.
	Store local.Store
	// Settings override those of the plan.
	Settings []config.Override
	// Listen offers a handler to other processes and returns its addresses, by
	// transport.
	Listen func(transport.Handler) (addresses map[string]string, listener io.Closer, err error)
	// Secure reports whether a process of this machine has a certificate, and
	// what is wrong with it; nil: plans are not checked for that.
	Secure func(process string) (bool, error)
	// Transports dial those addresses.
	Transports map[string]transport.Transport
	// Scratch is the directory for memory that outlives the process; empty for
	// none.
	Scratch string
	// Allow reports whether a caller with these identities may call a method of
	// a service; nil allows all.
	Allow func(identities []string, method string) bool
	// Changed is called after every call from outside that may have changed
	// something; nil for none.
	Changed func(apps.Change)
	// Tracer takes spans of single packet-ins; nil for none.
	Tracer local.Tracer
	// Registry is where metrics are exported; nil for nowhere.
	Registry prometheus.Registerer
	// Gatherer returns the metrics of this process; nil for none.
	Gatherer prometheus.Gatherer
	Log      *slog.Logger
	// Logs returns the last lines of the log of a process, this one or another
	// of the machine; nil for none.
	Logs func(process string, lines int) ([]string, error)
	// Alone says that the process is the whole controller, and its user knows
	// of no plan; for messages.
	Alone bool
}

// spec returns the declaration of a service; nil if the binary has none.
func (c *NodeConfig) spec(name string) *weft.Spec {
	for i := range c.Specs {
		if c.Specs[i].Name == name {
			return &c.Specs[i]
		}
	}
	return nil
}

// place returns the number of a service among all, for a familiar order.
func (c *NodeConfig) place(service string) int {
	return slices.IndexFunc(c.Specs, func(s weft.Spec) bool { return s.Name == service })
}

// settings returns the settings of the services of an instance under a plan.
func (c *NodeConfig) settings(current *members.Current, mine plan.Instance) (*config.Settings, error) {
	s := &config.Settings{}
	errs := []error{s.AddPartition(current.InForce(), mine.Partition, c.Specs), s.AddStandby(current.InForce(), mine, c.Specs)}
	for _, section := range current.InForce().SettingsOf(mine.Worker) {
		if c.spec(section.Service) == nil {
			continue // of another version
		}
		errs = append(errs, s.Add(section.Service, "plan", section.Text))
	}
	for _, o := range c.Settings {
		errs = append(errs, s.Set(string(o)))
	}
	return s, errors.Join(errs...)
}

// checkSettings reports what is wrong with all settings of a plan, so that all
// processes accept it or none does.
func (c *NodeConfig) checkSettings(current *members.Current) error {
	for _, i := range current.InForce().Instances() {
		s, err := c.settings(current, i)
		if err == nil {
			err = s.Check(c.Specs)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// clustered reports whether a service is clustered across partitions when a
// process is the given instance of a plan. When that changes, the service
// restarts, because the events it received describe another network.
func (c *NodeConfig) clustered(current *members.Current, mine plan.Instance, service string) bool {
	return mine.Partition != "" && current.InForce().AsOne(c.Specs)[service]
}

// startable returns an error if a plan has processes that could not start on a
// machine, that of this process. What is so already under the plan in force is not the
// new plan's: its processes may have been started with other addresses.
func (c *NodeConfig) startable(old, next *members.Current, machine string) error {
	if c.Secure == nil {
		return nil
	}
	err := Startable(next, machine, c.Secure)
	if err == nil || old == nil {
		return err
	}
	return newErrors(Startable(old, machine, c.Secure), err)
}
