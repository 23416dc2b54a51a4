package export

import (
	"cmp"
	"embed"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
)

// chart is the part of the Helm chart that is the same for all plans; the rest
// is Chart.yaml and values.yaml.
//
//go:embed all:chart
var chart embed.FS

// clusterBus is the URL of the NATS servers in a cluster, unless somebody says
// another.
const clusterBus = "tls://nats:4222"

// Helm returns a Helm chart of the plan.
func Helm(c Config) ([]File, error) {
	m, err := newModel(c)
	if err != nil {
		return nil, err
	}
	return m.chart(m.Name, m.Units, true)
}

// chart returns a Helm chart of some workers of the plan. One of them puts the
// plan into force.
func (m *model) chart(name string, units []unit, putPlan bool) ([]File, error) {
	bus, busPort, most := cmp.Or(m.BusURL, clusterBus), "4222", 0 // most instances of workers that scale
	if i := strings.LastIndex(bus, ":"); i > len("nats:/") {
		busPort = bus[i+1:]
	}
	for _, u := range units {
		if u.Scales {
			most = max(most, u.Replicas)
		}
	}
	repository, tag := splitImage(m.Image)
	files := []File{
		{"files/plan.yaml", []byte(m.YAML)},
		fill("Chart.yaml", "chart", name, "name", m.Name, "version", m.Version, "quoted", strconv.Quote(m.Version)),
		fill("values.yaml", "name", m.Name, "repository", strconv.Quote(repository), "tag", strconv.Quote(tag), "put", strconv.FormatBool(putPlan),
			"bus", strconv.Quote(bus), "busport", busPort, "replicas", strconv.Itoa(most), "port", strconv.Itoa(workerPort), "workers", helmWorkers(units)),
	}
	err := fs.WalkDir(chart, "chart", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := chart.ReadFile(path)
		files = append(files, File{strings.TrimPrefix(path, "chart/"), text})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("chart: %w", err)
	}
	return sorted(files), nil
}

// helmWorkers returns the values of workers, a line break before each line.
func helmWorkers(units []unit) string {
	var b lines
	block := func(name, empty string, some bool) {
		if !some {
			name += " " + empty
		}
		b.add("    %s", name)
	}
	for _, u := range units {
		var processes []string
		for _, p := range u.Instances {
			processes = append(processes, p.Name)
		}
		b.add("  %s:\n    kind: %s\n    class: %s\n    partition: %q", u.Name, u.Kind(), u.Class, u.Partition)
		b.add("    services: [%s]\n    processes: [%s]\n    scales: %t", strings.Join(u.Services, ", "), strings.Join(processes, ", "), u.Scales)
		if u.Autoscale != nil {
			b.add("    wanted: {metric: weft_scaler_wanted, minReplicas: %d} # by the plan's autoscale", u.Autoscale.Min)
		}
		b.add("    switches: %t\n    gateway: %t", u.Southern, u.Gateway)
		block("ports:", "[]", len(u.Ports) > 0)
		for _, p := range u.Ports {
			b.add("      - {name: %s, port: %d}", p.Name, p.Number)
		}
		block("set:", "[]", len(u.Set) > 0)
		for _, set := range u.Set {
			b.add("      - %q", set)
		}
		block("env:", "{}", len(u.Variables) > 0)
		for _, v := range u.Variables {
			b.add("      %s: %q", v.Name, v.Value)
		}
		var limits []string
		if u.CPULimit != "" {
			limits = append(limits, `cpu: "`+u.CPULimit+`"`)
		}
		if u.Memory != 0 {
			limits = append(limits, fmt.Sprintf(`memory: "%d"`, u.Memory))
		}
		block("resources:", "{}", len(limits) > 0)
		if len(limits) > 0 {
			b.add("      limits: {%s}", strings.Join(limits, ", "))
		}
	}
	return b.String()
}

// Kind is what Kubernetes runs the worker as: a StatefulSet if its pods are to
// have names that last.
func (u unit) Kind() string {
	if u.Replicas > 1 || u.Southern && u.Partition != "" {
		return "StatefulSet"
	}
	return "Deployment"
}

// splitImage takes the tag from a container image's reference; without one it
// is latest.
func splitImage(reference string) (repository, tag string) {
	if i := strings.LastIndex(reference, ":"); i > strings.LastIndex(reference, "/") {
		return reference[:i], reference[i+1:]
	}
	return reference, "latest"
}
