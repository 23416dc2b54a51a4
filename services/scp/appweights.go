package scp

import (
	"strings"

	"github.com/weft-sdn/weft/api"
)

// appPrefix is that of algorithms by which an app chooses: its name follows.
const appPrefix = "app:"

// appWeights are the weights that apps have set. The proxy's mu guards them.
type appWeights map[appWeightKey]appWeight

type appWeightKey struct{ app, instance string }

type appWeight struct {
	weight int
	until  int64
}

// of returns the weight of an instance by a policy, false if no app has set one.
func (w appWeights) of(policy *api.ScpPolicy, instance string, now int64) (weight int, has bool) {
	app, is := strings.CutPrefix(policy.GetAlgorithm(), appPrefix)
	if !is {
		return 0, false
	}
	x := w[appWeightKey{app, instance}]
	return x.weight, now < x.until
}

// weigh returns candidates with the weights that an app has set, without those that are to
// have nothing new, unless that are all.
func (w appWeights) weigh(list []candidate, policy *api.ScpPolicy, now int64) []candidate {
	if !strings.HasPrefix(policy.GetAlgorithm(), appPrefix) {
		return list
	}
	var some []candidate
	for _, x := range list {
		weight, has := w.of(policy, x.id, now)
		if has {
			x.weight = weight
		}
		if !has || weight > 0 {
			some = append(some, x)
		}
	}
	if len(some) == 0 {
		return list
	}
	return some
}
