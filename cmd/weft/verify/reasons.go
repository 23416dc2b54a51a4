package verify

import (
	"fmt"
	"math"
	"strings"

	"github.com/weft-sdn/weft/plan"
)

// keyOf returns the key of a figure of a service in a profile; the empty name is
// the process's.
func keyOf(service, figure string) string {
	if service == "" {
		return "process." + figure
	}
	return "services." + service + "." + figure
}

// joined lists a few keys.
func joined(keys []string) string {
	const most = 4
	if more := len(keys) - most; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(keys[:most], ", "), more)
	}
	return strings.Join(keys, ", ")
}

func inMicros(seconds float64) string { return fmt.Sprintf("%.4g us", seconds*1e6) }

// busy is from how many packet-ins a second on the work for them counts as more
// than that at rest.
const busy = 10

// whyCPU names the part of a process whose time is furthest from what was
// predicted, and the figure that is wrong.
func (c *comparison) whyCPU(d plan.ProcessDemand, at *process) reason {
	worst, most, whole := plan.ServiceDemand{}, -1.0, 0.0
	for _, part := range d.Parts {
		if off := math.Abs(part.CPU.Value - ofSlices(at.by[part.Service]).value); off > most {
			worst, most = part, off
		}
		whole += part.PacketIns
	}
	if worst.Service == "" {
		worst.PacketIns = whole
	}
	return c.whyService(worst, ofSlices(at.by[worst.Service]).value)
}

// whyService says which figure of a service, or of the process itself, is wrong,
// and what it should be for the share of a processor that was measured.
func (c *comparison) whyService(part plan.ServiceDemand, share float64) reason {
	d := c.profile.Process
	switches := max(c.profile.Switches, 1)
	if part.Service != "" {
		d = c.profile.Of(part.Service)
	}
	of := fmt.Sprintf("%.3g %% of a processor were predicted of %s, and it takes %.3g %%", 100*part.CPU.Value, nameOf(part.Service), 100*share)
	switch {
	case part.Service == "" && part.PacketIns >= busy:
		key := keyOf("", "per_packet")
		return reason{key, fmt.Sprintf("%s: garbage collection, and the transports of its messages, which the model does not have by process (process.idle %.3g, %s %s in the profile)", of, d.Idle.Value, key, inMicros(d.PerPacket.Value))}
	case part.Service == "":
		return reason{keyOf("", "idle"), fmt.Sprintf("%s: process.idle is %.3g in the profile", of, d.Idle.Value)}
	case part.PacketIns >= busy:
		rest := share - c.profile.Cost(d, part.Switches, 0, c.load.Changes)
		key := keyOf(part.Service, "per_packet")
		return reason{key, fmt.Sprintf("%s: %s is %s in the profile, %s by this", of, key, inMicros(d.PerPacket.Value), inMicros(max(0, rest)/part.PacketIns))}
	}
	key := keyOf(part.Service, "idle")
	per := float64(switches) / float64(max(part.Switches, 1))
	return reason{key, fmt.Sprintf("%s: %s is %.3g at %d switches in the profile, %.3g by this", of, key, d.Idle.Value, switches, share*per)}
}

func nameOf(service string) string {
	if service == "" {
		return "the process itself"
	}
	return service
}

// whyMemory names the part of a process whose memory is furthest from what was
// predicted.
func (c *comparison) whyMemory(d plan.ProcessDemand, at *process) reason {
	worst, most := plan.ServiceDemand{}, -1.0
	for _, part := range d.Parts {
		if off := math.Abs(part.Memory.Value - ofSlices(at.memory[part.Service]).value); off > most {
			worst, most = part, off
		}
	}
	here := ofSlices(at.memory[worst.Service]).value
	key := keyOf(worst.Service, "memory")
	switch {
	case len(at.memory) == 0:
		return reason{key, "its heap was not looked at"}
	case worst.Service == "":
		return reason{key, fmt.Sprintf("%s is %.4g MiB in the profile, and the process itself takes %.4g MiB here", key, c.profile.Process.Memory.Value*ofMiB, here*ofMiB)}
	}
	return reason{key, fmt.Sprintf("%s is %.4g MiB at %d switches in the profile, and it takes %.4g MiB of %d here", key, c.profile.Of(worst.Service).Memory.Value*ofMiB, c.profile.Switches, here*ofMiB, worst.Switches)}
}
