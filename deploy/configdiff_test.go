package deploy_test

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/weft-sdn/weft"
	"github.com/weft-sdn/weft/deploy/config"
	"github.com/weft-sdn/weft/plan"
)

// randomTuned returns a configuration and the document that says it.
func randomTuned(r *rand.Rand) (*tuned, string) {
	c := &tuned{Pace: 1}
	text := ""
	if r.IntN(2) == 0 {
		c.Pace = r.IntN(4)
		text += fmt.Sprintf("  pace: %d\n", c.Pace)
	}
	if r.IntN(2) == 0 {
		c.Fixed = r.IntN(3)
		text += fmt.Sprintf("  fixed: %d\n", c.Fixed)
	}
	if r.IntN(2) == 0 {
		c.Token = string(rune('a' + r.IntN(3)))
		text += "  token: " + c.Token + "\n"
	}
	for _, i := range r.Perm(5)[:r.IntN(5)] {
		c.Rules = append(c.Rules, tunedRule{fmt.Sprint("r", i), []string{"allow", "deny"}[r.IntN(2)]})
	}
	if len(c.Rules) > 0 {
		text += "  rules:\n"
		for _, x := range c.Rules {
			text += fmt.Sprintf("  - {name: %s, action: %s}\n", x.Name, x.Action)
		}
	}
	if text != "" {
		text = "live:\n" + text
	}
	return c, text
}

// changedKeys says which keys differ, by a way of its own.
func changedKeys(a, b *tuned) (keys []string) {
	if a.Pace != b.Pace {
		keys = append(keys, "pace")
	}
	actions := func(c *tuned) map[string]string {
		m := map[string]string{}
		for _, r := range c.Rules {
			m[r.Name] = r.Action
		}
		return m
	}
	x, y := actions(a), actions(b)
	for i := range 5 {
		name := fmt.Sprint("r", i)
		before, was := x[name]
		after, is := y[name]
		switch {
		case was && is && before != after:
			keys = append(keys, "rules["+name+"].action")
		case was != is:
			keys = append(keys, "rules["+name+"]")
		}
	}
	common := func(c *tuned, in map[string]string) (names []string) {
		for _, r := range c.Rules {
			if _, ok := in[r.Name]; ok {
				names = append(names, r.Name)
			}
		}
		return names
	}
	if !slices.Equal(common(a, y), common(b, x)) {
		keys = append(keys, "rules")
	}
	if a.Fixed != b.Fixed {
		keys = append(keys, "fixed")
	}
	if a.Token != b.Token {
		keys = append(keys, "token")
	}
	slices.Sort(keys)
	return keys
}

// What is told of two configurations is what differs, told back to front it is
// the same the other way round, and nothing is told of one and itself.
func TestDifferenceIsWhatDiffers(t *testing.T) {
	base, err := plan.Parse("a", []byte("{name: a, workers: {w0: {services: [live]}}}"))
	if err != nil {
		t.Fatal(err)
	}
	specs := []weft.Spec{{Name: "live", Config: &tuned{Pace: 1}, Live: []string{"pace", "rules"}}}
	with := func(text string) *plan.Plan {
		d, err := plan.ParseConfig("c", []byte(text))
		if err == nil {
			err = config.CheckDocument("c", d, specs)
		}
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		return base.WithConfig(d.Sections)
	}
	r := rand.New(rand.NewPCG(4, 14))
	for range 500 {
		a, textA := randomTuned(r)
		b, textB := randomTuned(r)
		there, err := config.Difference(with(textA), with(textB), specs)
		if err != nil {
			t.Fatal(err)
		}
		back, err := config.Difference(with(textB), with(textA), specs)
		if err != nil {
			t.Fatal(err)
		}
		same, err := config.Difference(with(textA), with(textA), specs)
		if err != nil || len(same) > 0 {
			t.Fatalf("%s\ndiffers from itself: %v, %v", textA, same, err)
		}
		var keys, values, reversed []string
		restarts := a.Fixed != b.Fixed || a.Token != b.Token
		for _, c := range there {
			keys = append(keys, c.Key)
			values = append(values, c.Key+": "+c.Old+" -> "+c.New)
			if (c.Effect == config.EffectRestart) != restarts {
				t.Fatalf("%s\nto\n%s\n%v: restart %v is wanted", textA, textB, c, restarts)
			}
			if strings.Contains(c.Key, "token") && (c.Old != "" && c.Old != plan.Secret || c.New != "" && c.New != plan.Secret) {
				t.Fatalf("a secret is told: %v", c)
			}
		}
		for _, c := range back {
			reversed = append(reversed, c.Key+": "+c.New+" -> "+c.Old)
		}
		slices.Sort(keys)
		slices.Sort(values)
		slices.Sort(reversed)
		if want := changedKeys(a, b); !slices.Equal(keys, want) {
			t.Fatalf("%s\nto\n%s\ntells %v, want %v", textA, textB, keys, want)
		}
		if !reflect.DeepEqual(values, reversed) {
			t.Fatalf("%s\nto\n%s\ntells %v, and back %v", textA, textB, values, reversed)
		}
	}
}
