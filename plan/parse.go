package plan

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/internal/document"
)

// Parse reads a plan from YAML; source, the name of the file, is for messages
// and for the plan's name if it has none. Parse reports all mistakes that do
// not depend on the services, each on a line of its own as FILE:LINE: what is
// wrong and what is allowed. It then still returns the part of the plan that it
// could read, so that Check finds more; nil if the text is not YAML.
func Parse(source string, text []byte) (*Plan, error) {
	r := &reader{plan: &Plan{source: source, lines: map[string]int{}, unread: map[string]bool{}}}
	v, mistakes, ok := document.Read(text, limits("plan"))
	r.mistakes = mistakes
	p := r.plan
	if !ok {
		return nil, p.report(r.mistakes)
	}
	r.read(v)
	p.defaults()
	r.mistakes = append(r.mistakes, p.invalid()...)
	if err := p.report(r.mistakes); err != nil {
		return p, err
	}
	p.unread = nil
	return p, nil
}

// sections reads the settings of services.
func (r *reader) sections(to *[]Section) func(string, document.Value) {
	return func(path string, v document.Value) {
		r.named(path, v, "a section for each service", func(name, path string, v document.Value) {
			if s := r.section(path, name, v); s != nil {
				*to = append(*to, *s)
			}
		})
		slices.SortFunc(*to, func(a, b Section) int { return cmp.Compare(a.Service, b.Service) })
	}
}

// read reads the whole plan.
func (r *reader) read(v document.Value) {
	p := r.plan
	r.keys("", v,
		field{"name", r.text(&p.Name)},
		field{"transport", r.choice(&p.Transport, Transports())},
		field{"events", r.choice(&p.Events, Transports())},
		field{"balance", r.choice(&p.Balance, Balances())},
		field{"pipeline", r.texts(&p.Pipeline, "stages")},
		field{"partial", r.flag(&p.Partial)},
		field{"bus", func(path string, v document.Value) {
			r.keys(path, v,
				field{"url", r.text(&p.Bus.URL)},
				field{"credentials", r.text(&p.Bus.Credentials)},
				field{"replicas", r.number(&p.Bus.Replicas)})
		}},
		field{"partitions", func(path string, v document.Value) {
			r.named(path, v, "a name for each partition with its switches below", r.partition)
		}},
		field{"workers", func(path string, v document.Value) {
			r.named(path, v, "a name for each worker with its services below", r.worker)
		}},
		field{"apps", func(path string, v document.Value) {
			r.named(path, v, "a name for each app", r.app)
			slices.SortStableFunc(p.Apps, func(a, b App) int { return cmp.Compare(a.Name, b.Name) })
		}},
		field{"links", r.links},
		field{"config", r.sections(&p.Config)},
	)
}

func (r *reader) partition(name, path string, v document.Value) {
	x := Partition{Name: name}
	var switches flow.SwitchList
	r.keys(path, v, field{"switches", func(path string, v document.Value) {
		if v.Kind != document.List {
			r.refuse(path, v.Line, "%s: want a list of switches, such as [1-8, 0000000000000010] or [rest], not %s", path, v.Short())
			return
		}
		for _, item := range v.Items {
			switch item.Kind {
			case document.Broken:
				r.plan.unread[path] = true
			case document.Word, document.Plain:
				if err := switches.Add(item.Text); err != nil {
					r.refuse(path, item.Line, "%s: %v", path, err)
				} else if item.Text != flow.Rest {
					r.plan.lines[join(path, switches.Ranges[len(switches.Ranges)-1].String())] = item.Line
				}
			default:
				r.refuse(path, item.Line, "%s: want a switch, a range of switches, or rest, not %s", path, item.Kind)
			}
		}
	}})
	x.Switches, x.Rest = switches.Ranges, switches.Rest
	slices.SortStableFunc(x.Switches, func(a, b flow.DPIDRange) int { return cmp.Compare(a.First, b.First) })
	r.plan.Partitions = append(r.plan.Partitions, x)
}

func (r *reader) worker(name, path string, v document.Value) {
	w := Worker{Name: name}
	r.keys(path, v,
		field{"services", r.texts(&w.Services, "services")},
		field{"replicas", r.number(&w.Replicas)},
		field{"autoscale", r.autoscale(&w.Autoscale)},
		field{"standby", r.number(&w.Standby)},
		field{"balance", r.choice(&w.Balance, Balances())},
		field{"partition", r.text(&w.Partition)},
		field{"class", r.choice(&w.Class, classes())},
		field{"nice", r.number(&w.Nice)},
		field{"cpus", r.text(&w.CPUs)},
		field{"cpu_quota", r.fraction(&w.CPUQuota)},
		field{"memory", func(path string, v document.Value) {
			b, err := ParseBytes(v.Text)
			if err != nil {
				r.fail(v.Line, "%s: want an amount of memory, such as 512MiB or 2GiB, not %s", path, v.Short())
			}
			w.Memory = b
		}},
		field{"listen", r.text(&w.Listen)},
		field{"env", func(path string, v document.Value) {
			w.Env = map[string]string{}
			r.named(path, v, "names of variables with their values", func(name, path string, v document.Value) {
				var s string
				r.text(&s)(path, v)
				w.Env[name] = s
			})
			if len(w.Env) == 0 {
				w.Env = nil
			}
		}},
		field{"machine", r.text(&w.Machine)},
		field{"settings", r.sections(&w.Settings)},
	)
	r.plan.Workers = append(r.plan.Workers, w)
}

func (r *reader) links(path string, v document.Value) {
	if v.Kind != document.List {
		r.fail(v.Line, "%s: want a list, such as [{from: southbound, to: routing, transport: ws}], not %s", path, v.Short())
		return
	}
	for i, item := range v.Items {
		var l Link
		path := fmt.Sprintf("links[%d]", i)
		r.plan.lines[path] = item.Line
		r.keys(path, item,
			field{"from", r.text(&l.From)},
			field{"to", r.text(&l.To)},
			field{"transport", r.choice(&l.Transport, Transports())})
		r.plan.Links = append(r.plan.Links, l)
	}
}
