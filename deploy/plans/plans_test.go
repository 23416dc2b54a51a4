package plans_test

import (
	"bytes"
	"slices"
	"testing"

	"github.com/weft-sdn/weft/deploy/plans"
	"github.com/weft-sdn/weft/plan"
)

// Every built-in plan can be read, has its file's name, and says what it is for.
// That they fit the services is shown in cmd/weft, which knows them.
func TestBuiltIn(t *testing.T) {
	if want := []string{"5gc", "hydra", "multi", "scale", "single", "split"}; !slices.Equal(plans.Names(), want) {
		t.Errorf("built in are %v; want %v", plans.Names(), want)
	}
	for _, name := range plans.Names() {
		text, err := plans.Read(name)
		if err != nil {
			t.Fatal(err)
		}
		p, err := plan.Parse(name+".yaml", text)
		if err != nil {
			t.Fatal(err)
		}
		if p.Name != name {
			t.Errorf("plan %s has the name %s", name, p.Name)
		}
		if !bytes.HasPrefix(text, []byte("# ")) || plans.About(text) == "" {
			t.Errorf("plan %s does not say what it is for", name)
		}
	}
}

func TestAbout(t *testing.T) {
	for text, want := range map[string]string{
		"# One process: all in\n# it. For a laptop.\nname: x\n": "One process: all in it.",
		"#\n# Two.\n":     "Two.",
		"# No full stop":  "No full stop",
		"name: x\n# No\n": "",
		"":                "",
	} {
		if got := plans.About([]byte(text)); got != want {
			t.Errorf("%q: got %q; want %q", text, got, want)
		}
	}
}

func TestUnknown(t *testing.T) {
	for _, name := range []string{"duo", "../plans", "", "single.yaml"} {
		want := `unknown plan "` + name + `"; built in: 5gc, hydra, multi, scale, single, split`
		if _, err := plans.Read(name); err == nil || err.Error() != want {
			t.Errorf("got %v; want %s", err, want)
		}
	}
}
