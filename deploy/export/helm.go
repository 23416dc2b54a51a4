package export

import (
	"cmp"
	"embed"
	"fmt"
	"io/fs"
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
	data := struct {
		*model
		Chart      string
		Units      []unit
		PutPlan    bool
		BusURL     string
		BusPort    string
		Repository string
		Tag        string
		Replicas   int // of workers that scale, at most
	}{model: m, Chart: name, Units: units, PutPlan: putPlan, BusURL: cmp.Or(m.BusURL, clusterBus), BusPort: "4222"}
	data.Repository, data.Tag = splitImage(m.Image)
	if i := strings.LastIndex(data.BusURL, ":"); i > len("nats:/") {
		data.BusPort = data.BusURL[i+1:]
	}
	for _, u := range units {
		if u.Scales {
			data.Replicas = max(data.Replicas, u.Replicas)
		}
	}
	files := []File{{"files/plan.yaml", []byte(m.YAML)}}
	for _, file := range []string{"Chart.yaml", "values.yaml"} {
		text, err := fill(file, data)
		if err != nil {
			return nil, err
		}
		files = append(files, File{file, text})
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
