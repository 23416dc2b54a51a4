package deploy

import (
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/weft-sdn/weft/plan"
)

// stamp is what a request between processes bears besides its method: which plan
// its sender goes by, and for whom it is. Processes learn of a plan one after the
// other; a request of one that still has another plan is refused, and made again
// when both have the same: else what it tells or asks would be of a network, or of
// a partition, that the receiver has no part in any more.
type stamp struct {
	wiring    uint64 // of the sender's plan (Current.Wiring)
	run       uint64 // epoch of the service that is to answer; 0: any
	partition string // of the service that has made the request; empty if it works for all
}

// on returns a method's name with the stamp.
func (s stamp) on(method string) string {
	b := append(make([]byte, 0, 80), method...)
	b = strconv.AppendUint(append(b, '@'), s.wiring, 10)
	b = strconv.AppendUint(append(b, '.'), s.run, 10)
	return string(append(append(b, '.'), s.partition...))
}

// readStamp takes a name apart that on has made. A name without a stamp is that of
// a request which needs none, or of an earlier build: then it is nil.
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

// stamp returns that of a request that a service, or (nil) somebody outside, has
// for one instance of another.
func (v *view) stamp(to *target, from *service) *stamp {
	s := &stamp{wiring: v.wiring(), run: to.epoch}
	if from != nil {
		s.partition = from.partition()
	}
	return s
}

// agrees reports whether the sender of a request goes by the plan that this view
// is of.
func (v *view) agrees(s *stamp) bool { return s == nil || s.wiring == v.wiring() }

// knows reports whether the plan has a partition; empty is that of services which
// work for all.
func (v *view) knows(partition string) bool {
	return partition == "" || v.current == nil || v.current.plan.Partition(partition) != nil
}

// meant reports whether a request is for this run of a service.
func (s *stamp) meant(to *service) bool { return s == nil || s.run == 0 || s.run == to.epoch.Load() }

// wiring returns that of the plan, 0 if there is none yet.
func (v *view) wiring() uint64 {
	if v.current == nil {
		return 0
	}
	return v.current.Wiring
}

// sameWiring reports whether two plans have the same services work with each
// other, for the same switches: if so, it does no harm that one process goes by the
// one and another by the other.
func sameWiring(a, b *plan.Plan) bool {
	return slices.Equal(a.Pipeline, b.Pipeline) &&
		slices.EqualFunc(a.Partitions, b.Partitions, func(x, y plan.Partition) bool {
			return x.Name == y.Name && slices.Equal(x.List(), y.List())
		}) &&
		slices.EqualFunc(a.Workers, b.Workers, func(x, y plan.Worker) bool {
			return x.Name == y.Name && x.Partition == y.Partition && slices.Equal(x.Services, y.Services)
		}) &&
		slices.EqualFunc(a.Apps, b.Apps, func(x, y plan.App) bool { return reflect.DeepEqual(x, y) })
}
