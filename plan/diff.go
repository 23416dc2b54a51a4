package plan

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// ChangeKind says what differs between two plans.
type ChangeKind string

// The kinds of changes, in the order in which Diff returns them.
const (
	PlanChanged      ChangeKind = "plan"      // a key of the whole plan: Key
	PartitionChanged ChangeKind = "partition" // the switches of partition Key; Old or New is empty if it is new or gone
	WorkerAdded      ChangeKind = "worker-added"
	WorkerRemoved    ChangeKind = "worker-removed"
	ReplicasChanged  ChangeKind = "replicas"
	WorkerChanged    ChangeKind = "worker"   // another Key of a worker
	ServiceAdded     ChangeKind = "added"    // New: workers that get it, more than before
	ServiceRemoved   ChangeKind = "removed"  // Old: workers that lose it
	ServiceMoved     ChangeKind = "moved"    // from the workers in Old to those in New
	TransportChanged ChangeKind = "link"     // what Worker sends to Peer; * is every worker
	SettingsChanged  ChangeKind = "settings" // of Service; in Worker only if that is set
)

// Change is one difference between two plans. What is not said is empty.
type Change struct {
	Kind    ChangeKind `json:"kind"`
	Worker  string     `json:"worker,omitempty"`
	Peer    string     `json:"peer,omitempty"`
	Service string     `json:"service,omitempty"`
	Key     string     `json:"key,omitempty"`
	Old     string     `json:"old,omitempty"`
	New     string     `json:"new,omitempty"`
}

// String returns the change as a line for people: + for what is added, - for
// what is removed, ~ for what changes.
func (c Change) String() string {
	from := orNothing(c.Old) + " -> " + orNothing(c.New)
	switch c.Kind {
	case PlanChanged:
		return "~ " + c.Key + ": " + from
	case PartitionChanged:
		switch {
		case c.Old == "":
			return "+ partition " + c.Key + ": switches " + c.New
		case c.New == "":
			return "- partition " + c.Key + ": switches " + c.Old
		}
		return "~ partition " + c.Key + ": switches " + from
	case WorkerAdded:
		return "+ worker " + c.Worker + ": " + c.New
	case WorkerRemoved:
		return "- worker " + c.Worker + ": " + c.Old
	case ReplicasChanged:
		return "~ worker " + c.Worker + ": replicas " + from
	case WorkerChanged:
		return "~ worker " + c.Worker + ": " + c.Key + " " + from
	case ServiceAdded:
		return "+ service " + c.Service + ": in " + c.New
	case ServiceRemoved:
		return "- service " + c.Service + ": no longer in " + c.Old
	case ServiceMoved:
		return "~ service " + c.Service + ": moves from " + c.Old + " to " + c.New
	case TransportChanged:
		if c.Worker == "*" && c.Peer == "*" {
			return "~ transport between all workers: " + from
		}
		return "~ transport from " + c.Worker + " to " + c.Peer + ": " + from
	case SettingsChanged:
		where := ""
		if c.Worker != "" {
			where = " in worker " + c.Worker
		}
		return "~ settings of " + c.Service + where + ": " + from
	}
	return string(c.Kind)
}

func orNothing(s string) string {
	if s == "" {
		return "none"
	}
	return s
}

// Diff returns what changes if a plan takes the place of an older one, in a
// fixed order; nothing if both say the same but for the order of workers and
// partitions.
func Diff(old, new *Plan) []Change {
	d := &differ{old: old, new: new}
	d.keys()
	d.partitions()
	d.workers()
	d.services()
	d.apps()
	d.transports()
	d.settings("", old.Config, new.Config)
	for i := range old.Workers {
		if w := new.Worker(old.Workers[i].Name); w != nil {
			d.settings(w.Name, old.Workers[i].Settings, w.Settings)
		}
	}
	return d.changes
}

type differ struct {
	old, new *Plan
	changes  []Change
}

func (d *differ) add(c Change) {
	if c.Old != c.New {
		d.changes = append(d.changes, c)
	}
}

func (d *differ) keys() {
	a, b := d.old, d.new
	for _, k := range []struct{ key, old, new string }{
		{"name", a.Name, b.Name},
		{"transport", a.Transport, b.Transport},
		{"events", a.Events, b.Events},
		{"balance", a.Balance, b.Balance},
		{"pipeline", strings.Join(a.Pipeline, ", "), strings.Join(b.Pipeline, ", ")},
		{"partial", strconv.FormatBool(a.Partial), strconv.FormatBool(b.Partial)},
		{"bus.url", a.Bus.URL, b.Bus.URL},
		{"bus.credentials", a.Bus.Credentials, b.Bus.Credentials},
		{"bus.replicas", strconv.Itoa(a.Bus.Replicas), strconv.Itoa(b.Bus.Replicas)},
	} {
		d.add(Change{Kind: PlanChanged, Key: k.key, Old: k.old, New: k.new})
	}
}

func (d *differ) partitions() {
	names := append(d.old.partitionNames(), d.new.partitionNames()...)
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		d.add(Change{Kind: PartitionChanged, Key: name, Old: d.old.Partition(name).switches(), New: d.new.Partition(name).switches()})
	}
}

// switches returns the switches of a partition as text; empty if it is nil.
func (x *Partition) switches() string {
	if x == nil {
		return ""
	}
	return strings.Join(x.List(), ", ")
}

// summary says what a worker is, for its addition or removal.
func (w *Worker) summary() string {
	s := strings.Join(w.Services, ", ")
	if w.Replicas > 1 {
		s += fmt.Sprintf("; %d replicas", w.Replicas)
	}
	if w.Standby > 0 {
		s += fmt.Sprintf("; %d standby", w.Standby)
	}
	if w.Partition != "" {
		s += "; partition " + w.Partition
	}
	if w.Machine != "" {
		s += "; on " + w.Machine
	}
	return s
}

func (d *differ) workers() {
	for i := range d.old.Workers {
		if w := &d.old.Workers[i]; d.new.Worker(w.Name) == nil {
			d.changes = append(d.changes, Change{Kind: WorkerRemoved, Worker: w.Name, Old: w.summary()})
		}
	}
	for i := range d.new.Workers {
		w := &d.new.Workers[i]
		before := d.old.Worker(w.Name)
		if before == nil {
			d.changes = append(d.changes, Change{Kind: WorkerAdded, Worker: w.Name, New: w.summary()})
			continue
		}
		d.add(Change{Kind: ReplicasChanged, Worker: w.Name, Old: strconv.Itoa(before.Replicas), New: strconv.Itoa(w.Replicas)})
		if before.Balance != d.old.Balance || w.Balance != d.new.Balance { // else it is told as the plan's
			d.add(Change{Kind: WorkerChanged, Worker: w.Name, Key: "balance", Old: before.Balance, New: w.Balance})
		}
		was, is := before.keys(), w.keys()
		for i := range is {
			d.add(Change{Kind: WorkerChanged, Worker: w.Name, Key: is[i].key, Old: was[i].text, New: is[i].text})
		}
		if slices.Equal(slices.Sorted(slices.Values(before.Services)), slices.Sorted(slices.Values(w.Services))) {
			d.add(Change{Kind: WorkerChanged, Worker: w.Name, Key: "order of services", Old: strings.Join(before.Services, ", "), New: strings.Join(w.Services, ", ")})
		}
		names := append(slices.Collect(maps.Keys(before.Env)), slices.Collect(maps.Keys(w.Env))...)
		slices.Sort(names)
		for _, name := range slices.Compact(names) {
			d.add(Change{Kind: WorkerChanged, Worker: w.Name, Key: "env." + name, Old: setTo(before.Env, name), New: setTo(w.Env, name)})
		}
	}
}

// setTo returns the value of a variable in quotes, empty if it is not set.
func setTo(env map[string]string, name string) string {
	if v, ok := env[name]; ok {
		return strconv.Quote(v)
	}
	return ""
}

type keyText struct{ key, text string }

// keys returns the values of a worker that are compared one by one.
func (w *Worker) keys() []keyText {
	memory, nice := "", ""
	if w.Memory > 0 {
		memory = w.Memory.String()
	}
	if w.Nice != 0 {
		nice = strconv.Itoa(w.Nice)
	}
	return []keyText{
		{"standby", strconv.Itoa(w.Standby)}, {"autoscale", w.Autoscale.String()}, {"cpu_quota", quota(w.CPUQuota)},
		{"partition", w.Partition}, {"class", w.Class}, {"nice", nice}, {"cpus", w.CPUs},
		{"memory", memory}, {"listen", w.Listen}, {"machine", w.Machine},
	}
}

// services tells which service is in other workers than before, by name.
func (d *differ) services() {
	names := append(d.old.Services(), d.new.Services()...)
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		before, now := d.old.hostNames(name, nil), d.new.hostNames(name, nil)
		in := func(list []string) func(string) bool {
			return func(w string) bool { return slices.Contains(list, w) }
		}
		left := strings.Join(slices.DeleteFunc(slices.Clone(before), in(now)), ", ")
		got := strings.Join(slices.DeleteFunc(slices.Clone(now), in(before)), ", ")
		c := Change{Service: name, Old: left, New: got}
		switch {
		case left != "" && got != "":
			c.Kind = ServiceMoved
		case got != "":
			c.Kind = ServiceAdded
		default:
			c.Kind = ServiceRemoved
		}
		d.add(c)
	}
}

// apps tells which apps come, go or are treated otherwise.
func (d *differ) apps() {
	line := func(a *App) string {
		if a == nil {
			return ""
		}
		text := fmt.Sprintf("absent %s, timeout %v", a.Absent, a.Timeout)
		if a.Kind == AppObserver {
			text = "observer"
		}
		if len(a.May) > 0 {
			text += fmt.Sprintf(", may %v on switches %v in tables %v, %d entries, %d packets per second", a.May, a.Switches, a.Tables, a.Entries, a.PacketsPerS)
		}
		return text
	}
	var names []string
	for _, a := range slices.Concat(d.old.Apps, d.new.Apps) {
		names = append(names, a.Name)
	}
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		d.add(Change{Kind: PlanChanged, Key: "apps." + name, Old: line(d.old.App(name)), New: line(d.new.App(name))})
	}
}

// transports compares what goes between the workers that are in both plans. A
// change that is the same for all of them is told once.
func (d *differ) transports() {
	var list []Change
	pairs := 0
	for i := range d.old.Workers {
		from := d.old.Workers[i].Name
		for k := range d.old.Workers {
			to := d.old.Workers[k].Name
			if d.new.Worker(from) == nil || d.new.Worker(to) == nil {
				continue
			}
			was, is := d.old.TransportBetween(from, to), d.new.TransportBetween(from, to)
			if was == Inproc || is == Inproc { // replicas have come or gone, which is told
				continue
			}
			if pairs++; was != is {
				list = append(list, Change{Kind: TransportChanged, Worker: from, Peer: to, Old: was, New: is})
			}
		}
	}
	same := slices.IndexFunc(list, func(c Change) bool { return c.Old != list[0].Old || c.New != list[0].New }) < 0
	if len(list) == pairs && pairs > 1 && same {
		list = []Change{{Kind: TransportChanged, Worker: "*", Peer: "*", Old: list[0].Old, New: list[0].New}}
		if list[0].Old == d.old.Transport && list[0].New == d.new.Transport { // is told as that of the plan
			list = nil
		}
	}
	slices.SortStableFunc(list, func(a, b Change) int {
		return cmp.Or(cmp.Compare(a.Worker, b.Worker), cmp.Compare(a.Peer, b.Peer))
	})
	if len(list) == 0 && !slices.Equal(d.old.Links, d.new.Links) { // no two workers are in both, or the order is another
		list = append(list, Change{Kind: PlanChanged, Key: "links", Old: linkText(d.old.Links), New: linkText(d.new.Links)})
	}
	d.changes = append(d.changes, list...)
}

func linkText(links []Link) string {
	var parts []string
	for _, l := range links {
		parts = append(parts, fmt.Sprintf("%s to %s by %s", l.From, l.To, l.Transport))
	}
	return strings.Join(parts, ", ")
}

func (d *differ) settings(worker string, old, new []Section) {
	line := func(list []Section, service string) string {
		i := slices.IndexFunc(list, func(s Section) bool { return s.Service == service })
		if i < 0 {
			return ""
		}
		if v, err := list[i].tree(); err == nil {
			return v.Flow()
		}
		return strings.TrimSpace(string(list[i].Text))
	}
	var names []string
	for _, s := range slices.Concat(old, new) {
		names = append(names, s.Service)
	}
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		d.add(Change{Kind: SettingsChanged, Worker: worker, Service: name, Old: line(old, name), New: line(new, name)})
	}
}
