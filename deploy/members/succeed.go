package members

import (
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/weft-sdn/weft"
	"github.com/weft-sdn/weft/plan"
)

// Succeed returns the successor of the plan in force (nil if there is none): p,
// run by the present processes as far as possible. The process that holds the
// switches' sessions keeps them, whatever its name in p, because sessions
// cannot move.
func Succeed(old *Current, p *plan.Plan, specs []weft.Spec) (*Current, error) {
	text, err := p.YAML()
	if err != nil {
		return nil, err
	}
	next := &Current{Generation: 1, Wiring: 1, Plan: string(text), Processes: map[string]string{}, plan: p}
	if old == nil {
		return next, nil
	}
	next.Generation = old.Generation + 1
	next.Wiring = next.Generation
	if sameWiring(old.plan, p) {
		next.Wiring = old.Wiring
	}
	holds := func(i plan.Instance) bool {
		return slices.ContainsFunc(specs, func(s weft.Spec) bool { return s.Pipeline && slices.Contains(i.Services, s.Name) })
	}
	free := map[string]plan.Instance{} // processes and their present instances
	for _, i := range old.plan.Instances() {
		free[old.ProcessOf(i.Name)] = i
	}
	left := p.Instances()
	take := func(fits func(new, old plan.Instance) bool) {
		left = slices.DeleteFunc(left, func(i plan.Instance) bool {
			for _, process := range slices.Sorted(maps.Keys(free)) {
				if fits(i, free[process]) {
					next.Processes[i.Name] = process
					delete(free, process)
					return true
				}
			}
			return false
		})
	}
	take(func(a, b plan.Instance) bool { return holds(a) && holds(b) && a.Name == b.Name })
	take(func(a, b plan.Instance) bool { return holds(a) && holds(b) && a.Partition == b.Partition })
	take(func(a, b plan.Instance) bool { return a.Name == b.Name })
	take(func(a, b plan.Instance) bool {
		return slices.ContainsFunc(a.Services, func(s string) bool { return slices.Contains(b.Services, s) })
	})
	for _, i := range left {
		name := i.Name
		for n := 2; slices.Contains(slices.Collect(maps.Values(next.Processes)), name); n++ {
			name = fmt.Sprintf("%s-%d", i.Name, n)
		}
		next.Processes[i.Name] = name
	}
	return next, nil
}

// sameWiring reports whether the same services work together under two plans,
// for the same switches. If so, one process may go by the one plan while
// another goes by the other.
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
