package plan

import (
	"fmt"
	"slices"
)

// Below this many packet-ins per second a controller counts as idle: hosts that
// resolve each other's addresses cause the rest.
const quiet = 10.0

// Derive splits the measured time into idle time, time per packet-in and time
// per topology change. One measurement yields one of them: without packet-ins
// and changes the first; with either of these that one, if earlier profiles of
// the same controller supply the others. What cannot be derived stays unknown.
// Derive copies missing figures from the bases; their idle times are scaled by
// the number of switches.
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

// adopt copies missing figures from an earlier profile and multiplies its idle
// time by a share.
func (d *Demand) adopt(b Demand, share float64) {
	if !d.Idle.Known && b.Idle.Known {
		d.Idle = Measured(b.Idle.Value * share)
	}
	d.PerPacket, d.PerChange = or(d.PerPacket, b.PerPacket), or(d.PerChange, b.PerChange)
	d.Memory = or(d.Memory, b.Memory)
}

// derive solves for the single unknown part.
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
		return Measured(max(rest, 0)) // below zero is a measurement error
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

// Missing returns the keys of unknown figures that a plan for some services
// needs, each as in the file: with packet-ins, with topology changes, or
// without.
func (p *Profile) Missing(services []string, packetIns, changes bool) (keys []string) {
	keys = p.Process.missing("process", packetIns, changes)
	for _, s := range services {
		keys = append(keys, p.Of(s).missing("services."+s, packetIns, changes)...)
	}
	return keys
}

// String describes the measurement.
func (p *Profile) String() string {
	return fmt.Sprintf("%d switches, %s packet-ins and %s changes per second, over %s s", p.Switches, number(p.PacketIns), number(p.Changes), number(p.Seconds))
}

func or(a, b Figure) Figure {
	if a.Known {
		return a
	}
	return b
}
