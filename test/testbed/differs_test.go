package testbed

import (
	"reflect"
	"slices"
	"strings"
	"testing"
)

// Whatever a Config or a Plan sets is declared: a field that this test does not
// know must be declared, or be no difference.
func TestDiffers(t *testing.T) {
	if list := (Config{CPU: -1}).differs(); len(list) != 0 {
		t.Errorf("a user's controller differs by %q", list)
	}
	same := []string{"Plan.Name", "Plan.Transport", "Plan.Partitions", "Worker.Name", "Worker.Services", "Worker.Replicas", "Worker.Partition", "Config.Program"}
	set := map[string]Config{
		"Config.CPU":         {CPU: 1},
		"Config.Environment": {CPU: -1, Environment: []string{"A=b"}},
		"Plan.Pipeline":      {CPU: -1, Plan: &Plan{Pipeline: []string{"paths"}}},
		"Config.Plan":        {CPU: -1, Plan: &Plan{Workers: []Worker{{Services: []string{"paths"}}}}},
		"Plan.Workers":       {CPU: -1, Plan: &Plan{Workers: []Worker{{Services: []string{"paths"}}}}},
		"Plan.Balance":       {CPU: -1, Plan: &Plan{Balance: "switch"}},
		"Plan.Config":        {CPU: -1, Plan: &Plan{Config: map[string]map[string]string{"southbound": {"flood_rate": "0"}}}},
		"Worker.CPUs":        {CPU: -1, Plan: &Plan{Workers: []Worker{{CPUs: "0"}}}},
		"Worker.CPUQuota":    {CPU: -1, Plan: &Plan{Workers: []Worker{{CPUQuota: 0.25}}}},
		"Worker.Autoscale":   {CPU: -1, Plan: &Plan{Workers: []Worker{{Autoscale: "{max: 2}"}}}},
		"Worker.Nice":        {CPU: -1, Plan: &Plan{Workers: []Worker{{Nice: -15}}}},
		"Worker.Settings":    {CPU: -1, Plan: &Plan{Workers: []Worker{{Settings: map[string]map[string]string{"paths": {"a": "b"}}}}}},
	}
	nothing := strings.Join(Config{CPU: -1, Plan: &Plan{Workers: []Worker{{}}}}.differs(), "; ")
	for _, of := range []reflect.Type{reflect.TypeFor[Config](), reflect.TypeFor[Plan](), reflect.TypeFor[Worker]()} {
		for i := range of.NumField() {
			name := of.Name() + "." + of.Field(i).Name
			c, ok := set[name]
			if got := strings.Join(c.differs(), "; "); ok && (got == "" || got == nothing) {
				t.Errorf("%s is set and not declared", name)
			} else if !ok && !slices.Contains(same, name) {
				t.Errorf("%s is neither declared nor known to be no difference", name)
			}
		}
	}
}
