package plan

import (
	"fmt"
	"slices"
)

// Below so many packet-ins per second a controller is taken to be without: what
// is left are hosts that ask for each other.
const quiet = 10.0

// Derive splits the time that was measured into what is there always, what a
// packet-in takes and what a change of the topology takes. One measurement
// yields one of them: without packet-ins and changes the first; with either that
// one, if the others are known from earlier profiles of the same controller.
// What cannot be told stays unknown. The bases' figures are taken over where
// there are none yet; their idle times are of as many switches as they had.
func (p *Profile) Derive(bases ...*Profile) {
	for _, b := range bases {
		share := float64(p.Switches) / float64(max(b.Switches, 1))
		p.Process.adopt(b.Process, share)
		for i := range p.Services {
			p.Services[i].adopt(b.Of(p.Services[i].Service), share)
		}
		for _, d := range b.Services {
			if !slices.ContainsFunc(p.Services, func(have Demand) bool { return have.Service == d.Service }) {
				d.adopt(d, share)
				p.Services = append(p.Services, d)
			}
		}
		for _, d := range b.Delays {
			i := slices.IndexFunc(p.Delays, func(have Delay) bool { return have.Transport == d.Transport })
			if i < 0 {
				p.Delays = append(p.Delays, d)
				continue
			}
			p.Delays[i].Local, p.Delays[i].Remote = or(p.Delays[i].Local, d.Local), or(p.Delays[i].Remote, d.Remote)
		}
	}
	p.Process.derive(p.PacketIns, p.Changes)
	for i := range p.Services {
		p.Services[i].derive(p.PacketIns, p.Changes)
	}
	p.sort()
}

// adopt takes over what is known from an earlier profile, whose idle time is to
// be multiplied by a share.
func (d *Demand) adopt(b Demand, share float64) {
	if !d.Idle.Known && b.Idle.Known {
		d.Idle = Measured(b.Idle.Value * share)
	}
	d.PerPacket, d.PerChange = or(d.PerPacket, b.PerPacket), or(d.PerChange, b.PerChange)
	d.Memory = or(d.Memory, b.Memory)
}

// derive solves for the one part that is not known.
func (d *Demand) derive(packetIns, changes float64) {
	if !d.CPU.Known {
		return
	}
	busy, moving := packetIns >= quiet, changes > 0
	left := func(known ...float64) Figure {
		rest := d.CPU.Value
		for _, k := range known {
			rest -= k
		}
		return Measured(max(rest, 0)) // below nothing is the error of a measurement
	}
	switch {
	case !busy && !moving:
		d.Idle = d.CPU
	case !d.Idle.Known:
	case busy && !moving:
		d.PerPacket = Measured(left(d.Idle.Value).Value / packetIns)
	case !busy && moving:
		d.PerChange = Measured(left(d.Idle.Value).Value / changes)
	case d.PerChange.Known && !d.PerPacket.Known:
		d.PerPacket = Measured(left(d.Idle.Value, changes*d.PerChange.Value).Value / packetIns)
	case d.PerPacket.Known && !d.PerChange.Known:
		d.PerChange = Measured(left(d.Idle.Value, packetIns*d.PerPacket.Value).Value / changes)
	}
}

// Missing returns the keys of what is not known and is needed to plan for some
// services, each as it stands in the file: with packet-ins, with changes of the
// topology, or without.
func (p *Profile) Missing(services []string, packetIns, changes bool) (keys []string) {
	look := func(path string, d Demand, memory bool) {
		for _, f := range []struct {
			key    string
			f      Figure
			needed bool
		}{{"idle", d.Idle, true}, {"per_packet", d.PerPacket, packetIns}, {"per_change", d.PerChange, changes}, {"memory", d.Memory, memory}} {
			if f.needed && !f.f.Known {
				keys = append(keys, path+"."+f.key)
			}
		}
	}
	look("process", p.Process, true)
	for _, s := range services {
		look("services."+s, p.Of(s), true)
	}
	return keys
}

// Cost returns the time of processors that a service takes for some switches of
// a network, in seconds per second: what it takes idle, and for so many changes a
// second, in proportion to the switches; and what it takes for packet-ins, so
// many a second. What is not known counts as nothing.
func (p *Profile) Cost(d Demand, switches int, packetIns, changes float64) float64 {
	share := float64(switches) / float64(max(p.Switches, 1))
	return (d.Idle.Value+d.PerChange.Value*changes)*share + d.PerPacket.Value*packetIns
}

// String says what was measured.
func (p *Profile) String() string {
	return fmt.Sprintf("%d switches, %s packet-ins and %s changes per second, over %s s", p.Switches, number(p.PacketIns), number(p.Changes), number(p.Seconds))
}

func or(a, b Figure) Figure {
	if a.Known {
		return a
	}
	return b
}
