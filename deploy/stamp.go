package deploy

import (
	"strconv"
	"strings"

	"github.com/weft-sdn/weft/deploy/local"
)

// stamp is sent with a request between processes, besides its method: it names
// the sender's plan and the addressee. Processes learn of a plan one after the
// other. A process refuses a request from a sender with another plan, and the
// sender repeats it when both have the same plan; otherwise the request might
// concern a network, or a partition, that the receiver does not belong to any
// more.
type stamp struct {
	wiring    uint64 // of the sender's plan (Current.Wiring)
	run       uint64 // epoch of the addressed service; 0: any
	partition string // of the requesting service; empty if it works for all
}

// on returns a method's name with the stamp.
func (s stamp) on(method string) string {
	b := append(make([]byte, 0, 80), method...)
	b = strconv.AppendUint(append(b, '@'), s.wiring, 10)
	b = strconv.AppendUint(append(b, '.'), s.run, 10)
	return string(append(append(b, '.'), s.partition...))
}

// readStamp splits a name that on made. The stamp is nil if the name has none:
// such a request needs none, or comes from an earlier build.
func readStamp(name string) (method string, s *stamp, err error) {
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
	run, err := strconv.ParseUint(parts[1], 10, 64)
	if err != nil {
		return "", nil, errMalformed
	}
	return method, &stamp{wiring, run, parts[2]}, nil
}

// stamp returns the stamp of a request from a service, or (nil) a client
// outside, to one instance of another service.
func (v *view) stamp(to *target, from *local.Service) *stamp {
	s := &stamp{wiring: v.wiring(), run: to.epoch}
	if from != nil {
		s.partition = from.Partition()
	}
	return s
}

// agrees reports whether the sender of a request goes by this view's plan.
func (v *view) agrees(s *stamp) bool { return s == nil || s.wiring == v.wiring() }

// knows reports whether the plan has a partition; empty stands for services
// that work for all.
func (v *view) knows(partition string) bool {
	return partition == "" || v.current == nil || v.current.InForce().Partition(partition) != nil
}

// meant reports whether a request is addressed to this run of a service.
func (s *stamp) meant(to *local.Service) bool {
	return s == nil || s.run == 0 || s.run == to.Epoch.Load()
}

// wiring returns the plan's wiring; 0 if there is no plan yet.
func (v *view) wiring() uint64 {
	if v.current == nil {
		return 0
	}
	return v.current.Wiring
}
