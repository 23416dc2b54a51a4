package planning

import (
	"context"

	"github.com/weft-sdn/weft/plan"
)

// Explained is why the shards of a made plan are where they are.
type Explained struct {
	Plan   string             `json:"plan"`
	Cost   float64            `json:"cost"` // µs of latency a second
	Bound  float64            `json:"bound"`
	Gap    float64            `json:"gap"` // share of the cost
	Proven bool               `json:"proven"`
	Best   float64            `json:"best"` // cost of the plan that would be made now
	Within float64            `json:"within_servers"`
	Broken []string           `json:"broken,omitempty"`
	Loads  []plan.Load        `json:"servers"`
	Shards []plan.Explanation `json:"shards"`
	Notes  []string           `json:"notes,omitempty"`
}

// Explain makes a plan anew by its head, and says what it costs as it is, and why
// its shards, or one if shard is not empty, are where they are.
func (m *MadePlan) Explain(ctx context.Context, from Sources, shard string) (*Explained, error) {
	best, is, broken, err := m.model(ctx, from)
	if err != nil {
		return nil, err
	}
	e := &Explained{
		Plan: m.plan.Name, Cost: is.Solution.Cost, Bound: is.Solution.Bound, Gap: is.Solution.Gap(), Proven: is.Solution.Proven,
		Best: best.Solution.Cost, Within: is.Within(), Broken: broken, Loads: is.Loads(), Notes: is.Notes,
	}
	if shard != "" {
		i, err := is.Find(shard)
		if err != nil {
			return nil, err
		}
		e.Shards = []plan.Explanation{is.Explain(i)}
		return e, nil
	}
	for i := range is.Shards {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		e.Shards = append(e.Shards, is.Explain(i))
	}
	return e, nil
}
