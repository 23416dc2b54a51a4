package plan

import (
	"cmp"
	"slices"

	"github.com/weft-sdn/weft"
)

// NetworkLoad is what a controller carries.
type NetworkLoad struct {
	// Parts are the switches and packet-ins of each partition; the key is "" in a
	// plan without partitions.
	Parts map[string]PartLoad
	// Changes is how often per second the topology changes.
	Changes float64
}

// PartLoad is the load of one partition.
type PartLoad struct {
	Switches  int
	PacketIns float64 // per second
}

// PacketIns returns the packet-ins per second of the whole network.
func (l NetworkLoad) PacketIns() float64 {
	sum := 0.0
	for _, part := range l.Parts {
		sum += part.PacketIns
	}
	return sum
}

// Prediction is what the model of Make says of a plan at work under a load.
type Prediction struct {
	Processes   []ProcessDemand // in the order of Plan.Instances
	Hops        []Hop           // of packet-ins, from stage to stage
	Connections []Connection    // between workers; sorted by From, To and Transport
	Rates       []Rate          // between services whose messages cross processes; as many as the profile has
}

// ProcessDemand is what a process takes.
type ProcessDemand struct {
	Instance
	// Parts are the demands of its services. The first, of the empty name, is the
	// process's own: what it takes by itself, and the share of its runtime in the
	// work for packet-ins.
	Parts []ServiceDemand
}

// ServiceDemand is what one service takes in one process.
type ServiceDemand struct {
	Service   string
	Switches  int
	PacketIns float64 // per second
	CPU       Figure  // seconds per second
	Memory    Figure  // octets
	Missing   []string
}

// CPU is the processor time of the process in seconds per second; it is unknown
// if a part of it is.
func (d ProcessDemand) CPU() Figure {
	return d.sum(func(s ServiceDemand) Figure { return s.CPU })
}

// Memory is that of the process in octets; it is unknown if a part of it is.
func (d ProcessDemand) Memory() Figure {
	return d.sum(func(s ServiceDemand) Figure { return s.Memory })
}

func (d ProcessDemand) sum(of func(ServiceDemand) Figure) Figure {
	total := Measured(0)
	for _, part := range d.Parts {
		f := of(part)
		total = Figure{total.Value + f.Value, total.Known && f.Known}
	}
	return total
}

// Hop is the way of packet-ins from a service to the next stage.
type Hop struct {
	From, To string
	// Crossings is how often a packet-in crosses to another process on it: 0 or 1,
	// or between them if partitions differ.
	Crossings float64
	// Delay is what that adds in seconds, Stage what the stage takes for a packet.
	Delay, Stage Figure
}

// Connection is how a worker reaches another.
type Connection struct {
	From, To  string
	Transport string
	// Delay is that of an empty request, there and back, in seconds.
	Delay Figure
}

// Predict returns what a plan takes under a load, and how its packet-ins travel,
// by the figures of a profile. What the profile lacks is unknown.
func Predict(p *Plan, specs []weft.Spec, profile *Profile, load NetworkLoad) *Prediction {
	pr := &predictor{p, specs, profile, load}
	m := &Prediction{Hops: pr.hops(), Connections: pr.connections(), Rates: pr.rates()}
	for _, i := range p.Instances() {
		m.Processes = append(m.Processes, pr.demandOf(i))
	}
	return m
}

// predictor makes a Prediction.
type predictor struct {
	plan    *Plan
	specs   []weft.Spec
	profile *Profile
	load    NetworkLoad
}

// demandOf returns what one process takes. Replicas divide the packet-ins, not the
// switches; a standby works for none.
func (pr *predictor) demandOf(i Instance) ProcessDemand {
	cpu, memory := pr.profile.processes(1)
	own := ServiceDemand{CPU: Figure{cpu, pr.profile.Process.Idle.Known}, Memory: Figure{float64(memory), pr.profile.Process.Memory.Known}}
	own.Missing = pr.profile.Process.missing("process", pr.load.PacketIns() > 0, false)
	d := ProcessDemand{Instance: i}
	for _, service := range i.Services {
		s := ServiceDemand{Service: service}
		for _, part := range sorted(pr.load.Parts) {
			at := slices.DeleteFunc(pr.plan.Running(service, part), func(o Instance) bool { return o.Standby > 0 })
			if slices.ContainsFunc(at, func(o Instance) bool { return o.Name == i.Name }) {
				s.Switches += pr.load.Parts[part].Switches
				s.PacketIns += pr.load.Parts[part].PacketIns / float64(len(at))
			}
		}
		figures := pr.profile.Of(service)
		whole, octets := pr.profile.share(figures, s.Switches, s.PacketIns, pr.load.Changes)
		alone := pr.profile.Cost(figures, s.Switches, s.PacketIns, pr.load.Changes)
		s.Missing = figures.missing("services."+service, s.PacketIns > 0, pr.load.Changes > 0)
		s.CPU, s.Memory = Figure{alone, !slices.ContainsFunc(s.Missing, isTime)}, Figure{float64(octets), figures.Memory.Known}
		own.CPU.Value += whole - alone
		d.Parts = append(d.Parts, s)
	}
	own.CPU.Known = !slices.ContainsFunc(own.Missing, isTime)
	d.Parts = slices.Insert(d.Parts, 0, own)
	return d
}

// hops returns the way of packet-ins from stage to stage, of all partitions by
// their packet-ins.
func (pr *predictor) hops() (list []Hop) {
	i := slices.IndexFunc(pr.specs, func(s weft.Spec) bool { return s.Pipeline })
	if i < 0 {
		return nil
	}
	total := 0.0
	weight := func(part string) float64 { return max(pr.load.Parts[part].PacketIns, declared) }
	for part := range pr.load.Parts {
		total += weight(part)
	}
	for _, part := range sorted(pr.load.Parts) {
		legs := pr.plan.Way(pr.specs, part)
		if len(legs) == 0 {
			continue
		}
		before, at := pr.specs[i].Name, legs[0].Worker
		for _, leg := range legs {
			for _, stage := range leg.Stages {
				k := slices.IndexFunc(list, func(h Hop) bool { return h.From == before && h.To == stage })
				if k < 0 {
					k = len(list)
					list = append(list, Hop{From: before, To: stage, Delay: Measured(0), Stage: pr.profile.Of(stage).PerPacket})
				}
				if leg.Worker != at {
					delay := pr.profile.DelayOf(leg.Transport).between(pr.plan.Worker(at), pr.plan.Worker(leg.Worker))
					list[k].Crossings += weight(part) / total
					list[k].Delay = Figure{list[k].Delay.Value + delay.Value*weight(part)/total, list[k].Delay.Known && delay.Known}
				}
				before, at = stage, leg.Worker
			}
		}
	}
	return list
}

// connections returns how workers reach each other for packet-ins and calls.
func (pr *predictor) connections() (list []Connection) {
	add := func(from, to, transport string) {
		l := Connection{from, to, transport, pr.profile.DelayOf(transport).between(pr.plan.Worker(from), pr.plan.Worker(to))}
		if !slices.Contains(list, l) {
			list = append(list, l)
		}
	}
	for _, t := range pr.plan.Traffic(pr.specs) {
		if len(t.Calls) > 0 {
			add(t.From, t.To, t.Transport)
		}
	}
	for _, part := range (&wayFinder{Plan: pr.plan}).parts() {
		legs := pr.plan.Way(pr.specs, part)
		for i := 1; i < len(legs); i++ {
			add(legs[i-1].Worker, legs[i].Worker, legs[i].Transport)
		}
	}
	slices.SortFunc(list, func(a, b Connection) int {
		return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To), cmp.Compare(a.Transport, b.Transport))
	})
	return list
}

// rates returns the rates of the profile between services whose messages
// cross processes in this plan.
func (pr *predictor) rates() []Rate {
	list := pr.profile.rates(pr.load.PacketIns())
	ways := pr.plan.Ways(pr.specs)
	crosses := func(r Rate, kind string) bool {
		return slices.ContainsFunc(ways, func(w Way) bool {
			return w.From == r.From && w.To == r.To && w.Kind == kind && !slices.Contains(w.Transports, Inproc)
		})
	}
	for i, r := range list {
		if !crosses(r, CallWay) {
			list[i].Calls = 0
		}
		if !crosses(r, EventWay) {
			list[i].Events = 0
		}
	}
	return slices.DeleteFunc(list, func(r Rate) bool { return r.Calls == 0 && r.Events == 0 })
}
