package members

import (
	"slices"
	"strconv"
	"strings"

	"github.com/weft-sdn/weft/deploy/local"
	"github.com/weft-sdn/weft/plan"
)

// Stamp is sent with a request between processes, besides its method: it names
// the sender's plan and the addressee. Processes learn of a plan one after the
// other. A process refuses a request from a sender with another plan, and the
// sender repeats it when both have the same plan; otherwise the request might
// concern a network, or a partition, that the receiver does not belong to any
// more.
type Stamp struct {
	Wiring    uint64 // of the sender's plan (Current.Wiring)
	run       uint64 // epoch of the addressed service; 0: any
	Number    uint64 // of a request that changes something, the same if it is made again; 0: none
	Partition string // of the requesting service; empty if it works for all
}

// on returns a method's name with the stamp, with its number only if the addressee reads it.
func (s Stamp) on(method string, numbered bool) string {
	b := append(make([]byte, 0, 80), method...)
	b = strconv.AppendUint(append(b, '@'), s.Wiring, 10)
	b = strconv.AppendUint(append(b, '.'), s.run, 10)
	if numbered && s.Number != 0 {
		b = strconv.AppendUint(append(b, '#'), s.Number, 10)
	}
	return string(append(append(b, '.'), s.Partition...))
}

// ReadStamp splits a name that on made. The stamp is nil if the name has none:
// such a request needs none, or comes from an earlier build.
func ReadStamp(name string) (method string, s *Stamp, err error) {
	method, text, found := strings.Cut(name, "@")
	if !found {
		return method, nil, nil
	}
	parts := strings.SplitN(text, ".", 3)
	if len(parts) < 3 {
		return "", nil, errMalformed
	}
	wiring, err := strconv.ParseUint(parts[0], 10, 64)
	if err != nil {
		return "", nil, errMalformed
	}
	var number uint64
	text, last, numbered := strings.Cut(parts[1], "#")
	if numbered {
		if number, err = strconv.ParseUint(last, 10, 64); err != nil {
			return "", nil, errMalformed
		}
	}
	run, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return "", nil, errMalformed
	}
	return method, &Stamp{wiring, run, number, parts[2]}, nil
}

// Repeatable returns the number by which a request is known if it is made again; 0: none.
func (s *Stamp) Repeatable() uint64 {
	if s == nil {
		return 0
	}
	return s.Number
}

// Stamp returns the stamp of a request from a service, or (nil) a client
// outside, to one instance of another service.
func (v *View) Stamp(to *Target, from *local.Service) *Stamp {
	s := &Stamp{Wiring: v.Wiring(), run: to.epoch}
	if from != nil {
		s.Partition = from.Partition()
	}
	return s
}

// Agrees reports whether the sender of a request goes by this view's plan.
func (v *View) Agrees(s *Stamp) bool { return s == nil || s.Wiring == v.Wiring() }

// Has reports whether the plan has a service publish for a partition; empty is
// for all. A run that the plan before had may still have events queued: those of
// a southbound for all are outdated once partitions have their own.
func (v *View) Has(service, partition string) bool {
	if v.Current == nil {
		return true
	}
	p := v.Current.InForce()
	if p.Has(service) {
		return slices.ContainsFunc(p.Workers, func(w plan.Worker) bool {
			return w.Partition == partition && slices.Contains(w.Services, service)
		})
	}
	return partition == "" || p.Partition(partition) != nil
}

// Meant reports whether a request is addressed to this run of a service.
func (s *Stamp) Meant(to *local.Service) bool {
	return s == nil || s.run == 0 || s.run == to.Epoch.Load()
}

// Wiring returns the plan's wiring; 0 if there is no plan yet.
func (v *View) Wiring() uint64 {
	if v.Current == nil {
		return 0
	}
	return v.Current.Wiring
}
