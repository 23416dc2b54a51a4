package plan

import (
	"math"
	"strings"
)

// What follows is the model of a controller's demand. Make places by it, and
// Predict foretells by it.

// Cost returns the processor time that a service takes for some switches of a
// network, in seconds per second: its idle time and the time for topology
// changes, in proportion to the switches, and the time for packet-ins. Unknown
// figures count as zero.
func (p *Profile) Cost(d Demand, switches int, packetIns, changes float64) float64 {
	share := float64(switches) / float64(max(p.Switches, 1))
	return (d.Idle.Value+d.PerChange.Value*changes)*share + d.PerPacket.Value*packetIns
}

// share returns what a service's share takes: processor time in seconds per
// second, with what the process's runtime takes for its packet-ins, and memory.
func (p *Profile) share(d Demand, switches int, packetIns, changes float64) (cpu float64, memory Bytes) {
	return p.Cost(d, switches, packetIns*(1+p.overhead()), changes),
		Bytes(math.Ceil(d.Memory.Value * float64(switches) / float64(max(p.Switches, 1))))
}

// processes returns what n processes take by themselves.
func (p *Profile) processes(n int) (cpu float64, memory Bytes) {
	return float64(n) * p.Process.Idle.Value, Bytes(float64(n) * p.Process.Memory.Value)
}

// overhead is the time that a process's runtime takes, mainly for garbage
// collection, per second that its services spend on packet-ins.
func (p *Profile) overhead() float64 {
	sum := 0.0
	for _, d := range p.Services {
		sum += d.PerPacket.Value
	}
	if sum <= 0 {
		return 0
	}
	return p.Process.PerPacket.Value / sum
}

// rates returns what services send each other at some packet-ins per second.
func (p *Profile) rates(packetIns float64) []Rate {
	scale := 1.0
	if p.PacketIns >= quiet {
		scale = packetIns / p.PacketIns
	}
	list := make([]Rate, len(p.Rates))
	for i, r := range p.Rates {
		list[i] = Rate{From: r.From, To: r.To, Calls: r.Calls * scale, Events: r.Events * scale}
	}
	return list
}

// between returns the delay between two workers.
func (d Delay) between(a, b *Worker) Figure {
	if a.Machine != b.Machine {
		return d.Remote
	}
	return d.Local
}

// missing returns the keys of unknown figures that are needed with packet-ins,
// with changes, or always.
func (d Demand) missing(path string, packetIns, changes bool) (keys []string) {
	for _, f := range []struct {
		key    string
		f      Figure
		needed bool
	}{{idleKey, d.Idle, true}, {perPacketKey, d.PerPacket, packetIns}, {perChangeKey, d.PerChange, changes}, {memoryKey, d.Memory, true}} {
		if f.needed && !f.f.Known {
			keys = append(keys, path+"."+f.key)
		}
	}
	return keys
}

// The keys of the figures of a demand.
const (
	idleKey      = "idle"
	perPacketKey = "per_packet"
	perChangeKey = "per_change"
	memoryKey    = "memory"
)

// isTime reports whether a key is of a time, not of memory.
func isTime(key string) bool { return !strings.HasSuffix(key, "."+memoryKey) }
