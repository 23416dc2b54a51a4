package plan

import (
	"slices"
	"strings"

	"github.com/weft-sdn/weft"
	"github.com/weft-sdn/weft/internal/document"
)

// Check reports everything that is wrong with the plan for the given services,
// each on a line of its own with the place in the file where there is one, what
// is allowed and how to mend it. Whether the settings fit the services is for
// package deploy to say.
func (p *Plan) Check(specs []weft.Spec) error {
	f := &fit{judge: judge{plan: p, mistakes: p.invalid()}, specs: specs, told: map[string]bool{}, there: map[string]bool{}}
	for _, name := range p.Services() {
		f.there[name] = true
	}
	if p.tooMany() {
		return p.report(f.mistakes) // whether each of them fits is not looked at
	}
	f.known()
	for i := range specs {
		if p.Has(specs[i].Name) {
			f.scale(&specs[i])
		}
	}
	for i := range p.Workers {
		w := &p.Workers[i]
		for _, name := range w.Services {
			if s := specOf(specs, name); s != nil {
				f.needs(w, s)
			}
		}
	}
	f.standbys()
	f.autoscaled()
	f.apps()
	f.pipeline()
	f.listening()
	return p.report(f.mistakes)
}

// known checks the names of services.
func (f *fit) known() {
	var names []string
	for _, s := range f.specs {
		names = append(names, s.Name)
	}
	for i := range f.plan.Workers {
		w := &f.plan.Workers[i]
		for _, s := range w.Services {
			if service.MatchString(s) && !slices.Contains(names, s) {
				path := "workers." + w.Name + ".services"
				f.fail(path+"."+s, "%s: unknown service %q; allowed: %s%s", path, s, orNone(names), document.Meant(s, names))
			}
		}
	}
	for i := range f.plan.Workers {
		w := &f.plan.Workers[i]
		for _, s := range w.Settings {
			f.configurable("workers."+w.Name+".settings."+s.Service, s)
		}
	}
	for _, s := range f.plan.Config {
		f.configurable("config."+s.Service, s)
		switch path := "config." + s.Service; {
		case !service.MatchString(s.Service):
		case !slices.Contains(names, s.Service):
			f.fail(path, "%s: unknown service %q; allowed: %s%s", path, s.Service, orNone(names), document.Meant(s.Service, names))
		case !f.plan.Has(s.Service):
			f.fail(path, "%s: service %s is in no worker; add it to one, or take its settings out", path, s.Service)
		}
	}
}

// configurable checks that there is anything to set.
func (f *fit) configurable(path string, s Section) {
	if spec := specOf(f.specs, s.Service); spec != nil && spec.Config == nil {
		f.fail(path, "%s: service %s has nothing to configure; take its settings out", path, s.Service)
	}
}

// scale checks how many of a service there are.
func (f *fit) scale(s *weft.Spec) {
	if s.Scale == weft.Any {
		f.partners(s)
		return
	}
	p := f.plan
	rule := "there is one of it in the whole system"
	if len(p.Partitions) > 0 {
		rule = "there is one of it for each partition"
	}
	first := map[string]*Worker{} // by partition
	for _, w := range p.hosts(s.Name) {
		path := "workers." + w.Name
		if w.Replicas > 1 {
			f.fail(path+".replicas", "%s.replicas: %d, but %s is in it, and %s; move %s to a worker without replicas, or set replicas to 1", path, w.Replicas, s.Name, rule, s.Name)
		}
		before := first[w.Partition]
		switch {
		case before != nil:
			f.fail(path+".services."+s.Name, "%s.services: %s is in worker %s already, and %s; take it out of one of them", path, s.Name, before.Name, rule)
			continue
		case w.Partition == "" && len(p.Partitions) > 0 && s.Pipeline: // a partition is one mastership
			f.fail(path+".services."+s.Name, "%s.services: %s runs once for each partition, but the worker is of none; move %s to a worker of each partition: %s", path, s.Name, s.Name, orNone(p.partitionNames()))
		}
		first[w.Partition] = w
	}
	all := first[""]
	if all != nil && len(first) > 1 && !s.Pipeline {
		f.fail("workers."+all.Name+".services."+s.Name, "workers.%s.services: %s is in a worker for all partitions and in workers of single ones (%s); have it in one way only", all.Name, s.Name, orNone(p.hostNames(s.Name, all)))
	}
	for _, x := range p.Partitions {
		if all == nil && first[x.Name] == nil {
			f.once("absent " + s.Name + " " + x.Name)
			f.fail("partitions."+x.Name, "partitions.%s: no %s, which each partition needs one of (there is one in %s); add %s to %s", x.Name, s.Name, orNone(p.hostNames(s.Name, nil)), s.Name, f.whereto(x.Name))
		}
	}
}

// partners checks a service whose instances call each other, such as paths, or
// tell each other what they do, such as forwarding: in one network of several
// partitions each of them has it, or none.
func (f *fit) partners(s *weft.Spec) {
	p := f.plan
	if !p.OneNetwork(f.specs) || !p.RunsPerPartition(s.Name) || !tellsItself(s) && !slices.ContainsFunc(s.Calls, func(m weft.Method) bool {
		return slices.ContainsFunc(s.Serves, func(o weft.Method) bool { return o.MethodName() == m.MethodName() })
	}) {
		return
	}
	served := map[string]bool{}
	for _, w := range p.hosts(s.Name) {
		if w.Partition == "" {
			f.fail("workers."+w.Name+".services."+s.Name, "workers.%s.services: %s is in a worker for all partitions and in workers of single ones (%s), so that two would work for the same switches; have it in one way only", w.Name, s.Name, orNone(p.hostNames(s.Name, w)))
		}
		served[w.Partition] = true
	}
	for _, x := range p.Partitions {
		if !served[x.Name] && !served[""] && f.once("absent "+s.Name+" "+x.Name) {
			f.fail("partitions."+x.Name, "partitions.%s: no %s, though others have it for themselves (%s), and it works with the help of all; add %s to %s", x.Name, s.Name, orNone(p.hostNames(s.Name, nil)), s.Name, f.whereto(x.Name))
		}
	}
}

// whereto says to which worker of a partition a service could be added.
func (f *fit) whereto(partition string) string {
	for i := range f.plan.Workers {
		if w := &f.plan.Workers[i]; w.Partition == partition && w.Replicas == 1 {
			return "workers." + w.Name + ".services"
		}
	}
	if partition == "" {
		return "a worker without replicas"
	}
	return "a worker with partition: " + partition
}

// needs checks that whatever a service of a worker wants is there for it.
func (f *fit) needs(w *Worker, s *weft.Spec) {
	for _, m := range s.Calls {
		server := f.provider(func(o *weft.Spec) bool {
			return slices.ContainsFunc(o.Serves, func(x weft.Method) bool { return x.MethodName() == m.MethodName() })
		})
		if f.spared(s, m.MethodName(), server) {
			continue
		}
		f.need(w, s, "calls", m.MethodName(), server)
	}
	for _, e := range s.Wants() {
		publisher := f.provider(func(o *weft.Spec) bool {
			return slices.ContainsFunc(o.Publishes, func(x weft.Subject) bool { return x.SubjectName() == e.SubjectName() })
		})
		if f.spared(s, e.SubjectName(), publisher) {
			continue
		}
		f.need(w, s, "subscribes to", e.SubjectName(), publisher)
	}
}

// spared reports whether a service does without something, as who provides it
// is in no worker.
func (f *fit) spared(s *weft.Spec, what string, provider *weft.Spec) bool {
	owner, _, _ := strings.Cut(what, ".")
	return (provider == nil || !f.there[provider.Name]) && slices.Contains(s.Optional, owner)
}

func (f *fit) provider(is func(*weft.Spec) bool) *weft.Spec {
	for i := range f.specs {
		if is(&f.specs[i]) {
			return &f.specs[i]
		}
	}
	return nil
}

// need checks that the provider of what a service wants is within reach of its
// worker: in the same partition, or for all.
func (f *fit) need(w *Worker, s *weft.Spec, does, what string, provider *weft.Spec) {
	path := "workers." + w.Name + ".services"
	p := f.plan
	if provider == nil {
		owner, _, _ := strings.Cut(what, ".")
		if f.once("nobody " + what) {
			f.fail(path+"."+s.Name, "%s: %s %s %s, which no service provides; is service %s missing in this build?", path, s.Name, does, what, owner)
		}
		return
	}
	if !f.there[provider.Name] {
		if p.Partial || !f.once("absent "+provider.Name) {
			return
		}
		to := path
		if provider.Scale != weft.Any && w.Replicas > 1 {
			to = f.whereto(w.Partition)
		}
		f.fail(path+"."+s.Name, "%s: %s %s %s, but service %s is in no worker; add %s to %s", path, s.Name, does, what, provider.Name, provider.Name, to)
		return
	}
	if p.runs(provider.Name, w.Partition) {
		return
	}
	there := p.hostNames(provider.Name, nil)
	switch {
	case w.Partition != "":
		if f.once("absent " + provider.Name + " " + w.Partition) {
			f.fail(path+"."+s.Name, "%s: %s %s %s, but %s is in workers of other partitions only (%s); add %s to %s, or to a worker of no partition",
				path, s.Name, does, what, provider.Name, orNone(there), provider.Name, f.whereto(w.Partition))
		}
	case does == "calls" && !directed(what) && !p.AsOne(f.specs)[provider.Name]: // events of all partitions may come together, but such a call has one server
		if f.once("which " + s.Name + " " + w.Name) {
			f.fail(path+"."+s.Name, "%s: %s calls %s, but %s runs per partition (%s), and worker %s is of none, so that nobody knows which of them is meant; put one %s into a worker of each partition",
				path, s.Name, what, provider.Name, orNone(there), w.Name, s.Name)
		}
	}
}

// pipeline checks that the stages are in the plan, are stages, and can be
// reached from every partition.
func (f *fit) pipeline() {
	p := f.plan
	var all []string
	for _, s := range f.specs {
		if s.Stage {
			all = append(all, s.Name)
		}
	}
	for _, name := range p.Pipeline {
		switch s := specOf(f.specs, name); {
		case s == nil && p.App(name) != nil:
		case s == nil || !s.Stage:
			f.fail("pipeline."+name, "pipeline: %s is not a stage; take it out, or list it in apps if it is one; stages are: %s", name, orNone(all))
		case !p.Has(name):
			f.fail("pipeline."+name, "pipeline: %s is in no worker; take it out, or add it to one", name)
		}
	}
	staged := p.Stages(f.specs)
	for _, name := range all {
		if p.Has(name) && !slices.Contains(staged, name) {
			f.fail("pipeline", "pipeline: %s is a stage but not listed, so it would see no packet; list it in its place, or take the service out of its worker", name)
		}
	}
	runner := f.provider(func(s *weft.Spec) bool { return s.Pipeline })
	if runner != nil && !p.Has(runner.Name) && len(staged) > 0 && f.once("absent "+runner.Name) {
		f.fail("pipeline", "pipeline: service %s, which holds the switches and runs the pipeline, is in no worker; add %s to one", runner.Name, runner.Name)
	}
	for _, x := range p.Partitions {
		for _, name := range staged {
			if p.Has(name) && !p.runs(name, x.Name) && f.once("absent "+name+" "+x.Name) {
				f.fail("partitions."+x.Name, "partitions.%s: no %s, a stage of the pipeline; add %s to %s, or to a worker of no partition", x.Name, name, name, f.whereto(x.Name))
			}
		}
	}
}
