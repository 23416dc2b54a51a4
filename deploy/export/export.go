// Package export writes a plan as what orchestrators take: a Compose file, a
// Helm chart, packages for ETSI OSM. The same plan gives the same files, octet
// for octet; none of them holds a secret.
//
// cmd/weft imports it. It imports the weft root for the services'
// declarations, plan, and a YAML library.
package export

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/weft-sdn/weft"
	"github.com/weft-sdn/weft/plan"
)

// workerPort is where the processes of a plan reach each other in containers,
// because each container has its own address.
const workerPort = 7000

// supervisorName is the certificate's name by which the plan is put into force.
const supervisorName = "supervisor"

// Config is what an export is made from.
type Config struct {
	// Plan has been checked against Specs.
	Plan *plan.Plan
	// Specs are the declarations of all services.
	Specs []weft.Spec
	// Image is the reference of the container image, NAME:TAG.
	Image string
	// BusURL is that of the NATS servers; empty is the target's default. The
	// plan's own counts before it.
	BusURL string
	// Version is that of charts and descriptors; not a version such as 1.2.3
	// means 0.1.0.
	Version string
}

// File is one file of an export.
type File struct {
	Path string // with slashes, below the directory of the export
	Data []byte
}

// unit is one worker of the plan as containers see it.
type unit struct {
	*plan.Worker
	Class     string
	Instances []instance
	Ports     []port
	Scales    bool     // there may be fewer instances than the plan has
	Set       []string // settings in containers, as service.key=value
	CPULimit  string   // processors; empty: not limited
	Southern  bool     // it holds the switches' sessions
	Gateway   bool
	Variables []variable
}

// instance is one process.
type instance struct {
	Name     string
	Services []string
}

// port is what the outside reaches in a worker.
type port struct {
	Name    string // openflow, or the service's
	Service string
	Number  int
	Host    int // at which the Compose file publishes it
}

// variable is one of the environment.
type variable struct{ Name, Value string }

// model is a plan as containers see it.
type model struct {
	Config
	Name  string
	Units []unit // in the order of the plan
	YAML  string // the plan
}

var (
	label   = regexp.MustCompile(`^[a-z]([a-z0-9-]*[a-z0-9])?$`)
	version = regexp.MustCompile(`^v?([0-9]+\.[0-9]+\.[0-9]+)$`)
)

// maxLabel is the longest name of a worker; orchestrators add to it, and end
// at 63 octets.
const maxLabel = 40

// newModel prepares an export.
func newModel(c Config) (*model, error) {
	own := *c.Plan
	for _, w := range c.Plan.Workers {
		if w.Autoscale != nil { // the plan has as many as there may be
			own = *own.WithReplicas(w.Name, w.Autoscale.Max)
		}
	}
	if err := identified(&own); err != nil {
		return nil, err
	}
	c.Plan = &own
	text, err := c.Plan.YAML()
	if err != nil {
		return nil, err
	}
	m := &model{Config: c, Name: strings.ToLower(c.Plan.Name), YAML: string(text)}
	m.BusURL = cmp.Or(c.Plan.Bus.URL, c.BusURL)
	if v := version.FindStringSubmatch(c.Version); v != nil {
		m.Version = v[1]
	} else {
		m.Version = "0.1.0"
	}
	var errs []error
	if !label.MatchString(strings.TrimLeft(m.Name, "0123456789")) || len(m.Name) > maxLabel || isNumber(m.Name) {
		errs = append(errs, fmt.Errorf("plan %q: charts' names want lower-case letters, digits and -, at most %d, and are no numbers; give the plan such a name", c.Plan.Name, maxLabel))
	}
	for i := range c.Plan.Workers {
		if w := &c.Plan.Workers[i]; w.Standby > 0 {
			errs = append(errs, fmt.Errorf("workers.%s.standby: %d; containers have no standbys yet, the orchestrator starts again what dies: take standby out", w.Name, w.Standby))
		}
		u, err := m.unit(&c.Plan.Workers[i])
		errs = append(errs, err)
		m.Units = append(m.Units, u)
	}
	m.publish()
	return m, errors.Join(errs...)
}

// identified switches workers to transports that authenticate the peer.
// Containers identify each other by certificates, and the bus does not pass on
// the sender's; memory they do not share.
func identified(p *plan.Plan) error {
	const machine = "containers may run on different machines; take grpc, ws or rest"
	if p.Transport == plan.SHM || p.Events == plan.SHM {
		return errors.New("transport or events: shm: " + machine)
	}
	const advice = "containers know each other by certificates, and over nats nobody can tell whose a call is; take grpc, ws or rest"
	if p.Transport == plan.NATS {
		return errors.New("transport: nats: " + advice)
	}
	for i, l := range p.Links {
		if l.Transport == plan.SHM {
			return fmt.Errorf("links[%d]: shm from %s to %s: %s", i, l.From, l.To, machine)
		}
		if l.Transport == plan.NATS {
			return fmt.Errorf("links[%d]: nats from %s to %s: %s", i, l.From, l.To, advice)
		}
	}
	if p.Events == plan.NATS {
		p.Events = p.Transport
	}
	return nil
}

// isNumber reports whether YAML would take a name for a number.
func isNumber(name string) bool {
	_, err1 := strconv.ParseInt(name, 0, 64)
	_, err2 := strconv.ParseFloat(name, 64)
	return err1 == nil || err2 == nil
}

// unit turns a worker of the plan into what runs in containers.
func (m *model) unit(w *plan.Worker) (unit, error) {
	u := unit{Worker: w, Class: w.ClassOf(m.Specs).String(), Scales: w.Replicas > 1, CPULimit: cpuLimit(w)}
	var errs []error
	if !label.MatchString(w.Name) || len(w.Name) > maxLabel {
		errs = append(errs, fmt.Errorf("workers.%s: containers' names want lower-case letters, digits and -, at most %d, a letter first; rename the worker", w.Name, maxLabel))
	}
	if w.Name == supervisorName || w.Name == "plan" || w.Name == "nats" {
		errs = append(errs, fmt.Errorf("workers.%s: the name is that of another container; rename the worker", w.Name))
	}
	for _, i := range w.Instances() {
		u.Instances = append(u.Instances, instance{i.Name, i.Services})
	}
	for _, name := range w.Services {
		i := slices.IndexFunc(m.Specs, func(s weft.Spec) bool { return s.Name == name })
		if i < 0 {
			return u, fmt.Errorf("workers.%s.services: no service %q", w.Name, name)
		}
		s := &m.Specs[i]
		u.Scales = u.Scales && s.Scale == weft.Any
		u.Southern = u.Southern || s.Pipeline || s.Beside != nil
		u.Gateway = u.Gateway || name == gatewayName
		settings, err := settingsOf(m.Plan, w.Name, s)
		if err == nil {
			err = settings.secret()
		}
		if err == nil {
			err = u.listen(s, settings)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("workers.%s: %w", w.Name, err))
		}
	}
	for _, name := range slices.Sorted(keys(w.Env)) {
		u.Variables = append(u.Variables, variable{name, w.Env[name]})
	}
	if _, has := w.Env["GOMEMLIMIT"]; w.Memory > 0 && !has {
		u.Variables = append(u.Variables, variable{"GOMEMLIMIT", fmt.Sprint(int64(w.Memory) / 10 * 9)})
	}
	return u, errors.Join(errs...)
}

// publish gives each port one of the host that no other has.
func (m *model) publish() {
	taken := map[int]bool{}
	for i := range m.Units {
		for k := range m.Units[i].Ports {
			p := &m.Units[i].Ports[k]
			for p.Host = p.Number; taken[p.Host]; p.Host++ {
			}
			taken[p.Host] = true
		}
	}
}

// certificates are the names of the certificates that the processes of the
// plan need, that of the supervisor last.
func (m *model) certificates() []string {
	var names []string
	for _, u := range m.Units {
		for _, i := range u.Instances {
			names = append(names, i.Name)
		}
	}
	return append(names, supervisorName)
}
