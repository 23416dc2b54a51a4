package plan

import (
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"

	"github.com/weft-sdn/weft"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/internal/document"
)

// classes returns the names of the classes.
func classes() []string {
	return []string{weft.RealTime.String(), weft.Latency.String(), weft.Compute.String()}
}

// invalid returns what is wrong with a plan whatever the services are.
func (p *Plan) invalid() []document.Mistake {
	j := &judge{plan: p}
	if p.Name != "" && (len(p.Name) > maxName || notName.MatchString(p.Name)) {
		j.fail("name", "name: want up to %d letters, digits, dots, dashes and underscores, not %q", maxName, p.Name)
	}
	j.choice("transport", p.Transport, Transports())
	j.choice("events", p.Events, Transports())
	j.choice("balance", p.Balance, Balances())
	j.bus()
	j.partitions()
	j.workers()
	j.apps()
	j.links()
	j.sharedMemory()
	for _, s := range p.Config {
		j.section("config."+s.Service, s)
	}
	return j.mistakes
}

func (j *judge) section(path string, s Section) {
	if !service.MatchString(s.Service) {
		j.fail(path, "%s: %q is no service's name, which is lower-case letters and digits", path, s.Service)
	}
}

func (j *judge) bus() {
	b := j.plan.Bus
	if b.Replicas != 1 && b.Replicas != 3 && b.Replicas != 5 {
		j.fail("bus.replicas", "bus.replicas: want 1, 3 or 5, not %d", b.Replicas)
	} else if b.Replicas > 1 && b.URL == "" && !j.plan.unread["bus.url"] {
		j.fail("bus.replicas", "bus.replicas: %d copies of the state need as many servers, but the embedded one is alone; name a cluster in bus.url, or set bus.replicas to 1", b.Replicas)
	}
	if b.Credentials != "" && b.URL == "" && !j.plan.unread["bus.url"] {
		j.fail("bus.credentials", "bus.credentials: the embedded server asks for none; name a server in bus.url, or take bus.credentials out")
	}
	if b.URL == "" {
		return
	}
	for one := range strings.SplitSeq(b.URL, ",") {
		scheme, address, ok := strings.Cut(strings.TrimSpace(one), "://")
		if !ok || !slices.Contains([]string{"nats", "tls", "ws", "wss"}, scheme) || address == "" || strings.ContainsAny(address, " \t\n") {
			j.fail("bus.url", "bus.url: want the address of a NATS server, such as nats://10.0.0.1:4222, several separated by commas, not %q", one)
		}
	}
}

// partitions checks that every switch is in exactly one.
func (j *judge) partitions() {
	type part struct {
		flow.DPIDRange
		partition string
	}
	var all []part
	rest, whole := "", true
	seen := map[string]bool{}
	for _, x := range j.plan.Partitions {
		path := "partitions." + x.Name
		j.label(path, "partition", x.Name)
		if seen[x.Name] {
			j.fail(path, "%s: the name is there twice; give each partition its own", path)
		}
		seen[x.Name] = true
		if x.Rest && rest != "" {
			j.fail(path+".switches", "%s.switches: partition %s has the rest of the switches already; only one can", path, rest)
		} else if x.Rest {
			rest = x.Name
		}
		if j.plan.unread[path] || j.plan.unread[path+".switches"] {
			whole = false
		} else if len(x.Switches) == 0 && !x.Rest {
			j.fail(path, "%s: no switches; list some, such as [1-8], or say [rest]", path)
		}
		for _, r := range x.Switches {
			if r.Last < r.First {
				j.fail(path+".switches", "%s.switches: range %s is empty: its end is before its beginning", path, r)
				continue
			}
			all = append(all, part{r, x.Name})
		}
	}
	if len(j.plan.Partitions) == 0 {
		return
	}
	slices.SortStableFunc(all, func(a, b part) int { return compareRanges(a.DPIDRange, b.DPIDRange) })
	gap, last, covered := "", flow.DPID(0), false // covered: up to and including last
	owner := ""
	for _, r := range all {
		if covered && r.First <= last {
			both := flow.DPIDRange{First: r.First, Last: min(last, r.Last)}
			j.fail("partitions."+r.partition+".switches."+r.String(), "partitions.%s.switches: %s is in partition %s already; a switch is in one, and listed once", r.partition, both, owner)
		} else if first := next(last, covered); r.First > first && gap == "" {
			gap = flow.DPIDRange{First: first, Last: r.First - 1}.String()
		}
		if !covered || r.Last > last {
			last, owner, covered = r.Last, r.partition, true
		}
	}
	if gap == "" && (!covered || last != ^flow.DPID(0)) {
		gap = flow.DPIDRange{First: next(last, covered), Last: ^flow.DPID(0)}.String()
	}
	switch {
	case !whole:
	case gap != "" && rest == "":
		j.fail("partitions", "partitions: switches %s are in none; add rest to the switches of one partition", gap)
	case gap == "" && rest != "":
		j.fail("partitions."+rest+".switches", "partitions.%s.switches: no switches are left for rest; take it out", rest)
	}
}

func next(last flow.DPID, covered bool) flow.DPID {
	if covered {
		return last + 1
	}
	return 0
}

func compareRanges(a, b flow.DPIDRange) int {
	switch {
	case a.First != b.First && a.First < b.First:
		return -1
	case a.First != b.First:
		return 1
	case a.Last < b.Last:
		return -1
	case a.Last > b.Last:
		return 1
	}
	return 0
}

func (j *judge) workers() {
	p := j.plan
	j.few("workers", len(p.Workers))
	if len(p.Workers) <= maxItems && p.tooMany() {
		j.fail("workers", "workers: more than %d processes with all replicas; take some out", maxItems)
	}
	if len(p.Workers) == 0 && !p.unread[""] {
		j.fail("workers", "workers: there are none; add one, such as all: {services: [southbound, forwarding]}")
	}
	names := map[string]bool{}
	for i := range p.Workers {
		w := &p.Workers[i]
		if names[w.Name] {
			j.fail("workers."+w.Name, "workers.%s: the name is there twice; give each worker its own", w.Name)
		}
		names[w.Name] = true
	}
	for i := range p.Workers {
		w := &p.Workers[i]
		j.worker("workers."+w.Name, w)
		if m := serial.FindStringSubmatch(w.Name); m != nil {
			if other := p.Worker(m[1]); other != nil && other.mostReplicas() > 1 {
				if n, err := strconv.Atoi(m[2]); err != nil || n > other.mostReplicas() {
					continue
				}
				j.fail("workers."+w.Name, "workers.%s: one of the %d replicas of worker %s is called so; rename the worker", w.Name, other.mostReplicas(), other.Name)
			}
		}
	}
}

func (j *judge) worker(path string, w *Worker) {
	j.label(path, "worker", w.Name)
	if len(w.Services) == 0 && !j.plan.unread[path+".services"] {
		j.fail(path, "%s: no services; list some, such as services: [hosts]", path)
	}
	j.few(path+".services", len(w.Services))
	there := map[string]bool{}
	for _, s := range w.Services {
		if there[s] {
			j.fail(path+".services", "%s.services: %s is listed twice; list it once", path, s)
		}
		there[s] = true
		if !service.MatchString(s) {
			j.fail(path+".services."+s, "%s.services: %q is no service's name, which is lower-case letters and digits", path, s)
		}
	}
	if w.Replicas < 1 || w.Replicas > maxReplicas {
		j.fail(path+".replicas", "%s.replicas: want 1 to %d, not %d", path, maxReplicas, w.Replicas)
	}
	switch {
	case w.Standby < 0 || w.Standby > maxStandby:
		j.fail(path+".standby", "%s.standby: want 0 to %d processes that stand ready, not %d", path, maxStandby, w.Standby)
	case w.Standby > 0 && w.Replicas > 1:
		j.fail(path+".standby", "%s.standby: the worker has %d replicas, which all work; take standby out, or set replicas to 1", path, w.Replicas)
	}
	j.scaling(path, w)
	for n := 1; n <= min(w.Standby, maxStandby); n++ {
		if j.plan.Worker(w.standbyName(n)) != nil {
			j.fail(path+".standby", "%s.standby: a worker is called %s as a standby would be; rename one", path, w.standbyName(n))
		}
	}
	j.choice(path+".balance", w.Balance, Balances())
	if w.Class != "" {
		j.choice(path+".class", w.Class, classes())
	}
	if w.Nice < -20 || w.Nice > 19 {
		j.fail(path+".nice", "%s.nice: want -20 (first) to 19 (last), not %d", path, w.Nice)
	}
	if w.CPUs != "" {
		if err := parseCPUs(w.CPUs); err != nil {
			j.fail(path+".cpus", "%s.cpus: %v", path, err)
		}
	}
	if w.Memory != 0 && (w.Memory < minMemory || w.Memory > maxMemory) {
		j.fail(path+".memory", "%s.memory: want %v to %v, not %v", path, Bytes(minMemory), Bytes(maxMemory), w.Memory)
	}
	if w.Partition != "" && j.plan.Partition(w.Partition) == nil {
		var names []string
		for _, x := range j.plan.Partitions {
			names = append(names, x.Name)
		}
		j.fail(path+".partition", "%s.partition: unknown partition %q; allowed: %s%s", path, w.Partition, orNone(names), document.Meant(w.Partition, names))
	}
	if w.Machine != "" && (len(w.Machine) > 253 || strings.ContainsAny(w.Machine, " \t\n/")) {
		j.fail(path+".machine", "%s.machine: want the name of a machine, not %q", path, w.Machine)
	}
	host, port, err := net.SplitHostPort(w.Listen)
	n, bad := strconv.ParseUint(port, 10, 16)
	switch {
	case err != nil || bad != nil || strings.ContainsAny(host, " \t\n/"):
		j.fail(path+".listen", "%s.listen: want HOST:PORT, such as 127.0.0.1:0, not %q", path, w.Listen)
	case n != 0 && w.Standby > 0:
		j.fail(path+".listen", "%s.listen: the worker and its standby cannot both listen at %s; set the port to 0, so that each gets one of its own", path, w.Listen)
	case n != 0 && w.mostReplicas() > 1:
		j.fail(path+".listen", "%s.listen: %d replicas cannot all listen at %s; set the port to 0, so that each gets one of its own, or give each replica a worker of its own", path, w.mostReplicas(), w.Listen)
	}
	for _, name := range slices.Sorted(maps.Keys(w.Env)) {
		if !envName.MatchString(name) {
			j.fail(path+".env."+name, "%s.env: %q is no name of a variable, which is letters, digits and underscores", path, name)
		}
		if strings.ContainsRune(w.Env[name], 0) {
			j.fail(path+".env."+name, "%s.env.%s: the value has a NUL character in it, which no environment can hold", path, name)
		}
	}
	for _, s := range w.Settings {
		j.section(path+".settings."+s.Service, s)
		if !there[s.Service] && !j.plan.unread[path+".services"] {
			j.fail(path+".settings."+s.Service, "%s.settings: service %s is not in this worker; its services are %s", path, s.Service, orNone(w.Services))
		}
	}
}

func (j *judge) links() {
	p := j.plan
	if j.few("links", len(p.Links)); len(p.Links) > maxItems {
		return
	}
	var names []string
	for _, w := range p.Workers {
		names = append(names, w.Name)
	}
	for i, l := range p.Links {
		path := fmt.Sprintf("links[%d]", i)
		if p.unread[path] {
			continue
		}
		for _, end := range []struct{ key, name string }{{"from", l.From}, {"to", l.To}} {
			switch {
			case end.name == "":
				j.fail(path+"."+end.key, "%s: no %s; name a worker, or * for any", path, end.key)
			case end.name != "" && end.name != "*" && !slices.Contains(names, end.name):
				j.fail(path+"."+end.key, "%s.%s: unknown worker %q; allowed: *, %s%s", path, end.key, end.name, orNone(names), document.Meant(end.name, names))
			}
		}
		switch {
		case l.Transport == "":
			j.fail(path+".transport", "%s: no transport; give one of %s", path, strings.Join(Transports(), ", "))
		case l.Transport != "":
			j.choice(path+".transport", l.Transport, Transports())
		}
		for k, before := range p.Links[:i] {
			if before.From != "" && before.To != "" && (before.From == "*" || before.From == l.From) && (before.To == "*" || before.To == l.To) {
				j.fail(path, "%s: links[%d] (from %s to %s) comes first and matches all that this one does; put this one before it, or take one of them out", path, k, before.From, before.To)
				break
			}
		}
	}
}
