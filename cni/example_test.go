package cni

import (
	"encoding/json"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// chartFunctions are the functions of Gradiant's chart open5gs 2.3: the names of its charts of one
// function each, and what each needs beside its own section of the configuration.
var chartFunctions = map[string][]string{
	"amf": nil, "ausf": nil, "bsf": nil, "nrf": nil, "nssf": nil, "pcf": {"db_uri"}, "scp": nil, "smf": nil, "udm": nil, "udr": {"db_uri"},
}

// chartValues are the values of a function in that chart which the example sets. An unknown one would
// be passed over in silence, for the schema of the chart lets it.
type chartValues struct {
	Enabled        *bool             `yaml:"enabled"`
	PodAnnotations map[string]string `yaml:"podAnnotations"`
	LivenessProbe  chartProbe        `yaml:"livenessProbe"`
	ReadinessProbe chartProbe        `yaml:"readinessProbe"`
	// Config takes the place of the whole file that the chart makes for the function.
	Config map[string]yaml.Node `yaml:"customOpen5gsConfig"`
}

type chartProbe struct {
	Enabled *bool `yaml:"enabled"`
}

// chartSection is what all functions have in their section.
type chartSection struct {
	SBI struct {
		Server []struct {
			Dev  string `yaml:"dev"`
			Port uint16 `yaml:"port"`
		} `yaml:"server"`
		Client map[string][]struct {
			URI string `yaml:"uri"`
		} `yaml:"client"`
	} `yaml:"sbi"`
}

// readExample reads a file of examples/open5gs/kubernetes. What into does not have is an error.
func readExample(t *testing.T, name string, into any) {
	t.Helper()
	f, err := os.Open(filepath.Join("../examples/open5gs/kubernetes", name))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	d := yaml.NewDecoder(f)
	d.KnownFields(true)
	if err := d.Decode(into); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
}

// TestKubernetesExample: the network of the example for Kubernetes is one that the plug-in takes, and
// the values give each function an address there, at which it serves, and by which it finds the NRF.
func TestKubernetesExample(t *testing.T) {
	var object struct {
		APIVersion string                  `yaml:"apiVersion"`
		Kind       string                  `yaml:"kind"`
		Metadata   struct{ Name string }   `yaml:"metadata"`
		Spec       struct{ Config string } `yaml:"spec"`
	}
	readExample(t, "network.yaml", &object)
	network, err := parseNew([]byte(object.Spec.Config))
	if err != nil {
		t.Fatal(err)
	}
	if object.APIVersion != "k8s.cni.cncf.io/v1" || object.Kind != "NetworkAttachmentDefinition" || network.Name != object.Metadata.Name || network.Type != "weft-cni" || !network.Capabilities["ips"] || network.IPAM.Type != "" {
		t.Errorf("network.yaml: %+v, %+v", object, network)
	}
	values := map[string]chartValues{}
	readExample(t, "values.yaml", &values)
	at := map[netip.Addr]string{}
	for name, v := range values {
		if _, known := chartFunctions[name]; !known {
			t.Errorf("%s: the chart has no such function", name)
		}
		if v.Enabled != nil && !*v.Enabled {
			continue
		}
		if a := exampleAddress(t, name, v.PodAnnotations, network.Name); at[a] != "" {
			t.Errorf("%s and %s are both at %v", name, at[a], a)
		} else {
			at[a] = name
		}
		if on := v.LivenessProbe.Enabled; on == nil || *on || v.ReadinessProbe.Enabled == nil || *v.ReadinessProbe.Enabled {
			t.Errorf("%s: its probes come to the first interface, where it does not serve", name)
		}
	}
	for name, v := range values {
		if v.Enabled == nil || *v.Enabled {
			checkExampleFunction(t, name, v.Config, at)
		}
	}
	for name := range chartFunctions {
		if _, set := values[name]; !set {
			t.Errorf("%s is as the chart has it, at no switch of its own", name)
		}
	}
}

// exampleAddress returns the address that a function has in a network, by its annotation for Multus.
func exampleAddress(t *testing.T, name string, annotations map[string]string, network string) netip.Addr {
	t.Helper()
	var list []struct {
		Name string         `json:"name"`
		IPs  []netip.Prefix `json:"ips"`
	}
	d := json.NewDecoder(strings.NewReader(annotations["k8s.v1.cni.cncf.io/networks"]))
	d.DisallowUnknownFields()
	if err := d.Decode(&list); err != nil || len(annotations) != 1 || len(list) != 1 || list[0].Name != network || len(list[0].IPs) != 1 {
		t.Fatalf("%s: want one annotation for one address in %s; got %v: %v", name, network, annotations, err)
	}
	ip := list[0].IPs[0]
	if ip.Masked() != netip.MustParsePrefix("10.9.0.0/16") {
		t.Errorf("%s is at %v, which is not of the others' subnet", name, ip)
	}
	return ip.Addr()
}

// checkExampleFunction checks the configuration of a function: it has all that Open5GS needs for the
// service-based interface, for nothing is left of what the chart would have written.
func checkExampleFunction(t *testing.T, name string, config map[string]yaml.Node, at map[netip.Addr]string) {
	t.Helper()
	for key := range config {
		if key != name && !slices.Contains(chartFunctions[name], key) {
			t.Errorf("%s: section %s is not its own", name, key)
		}
	}
	for _, key := range chartFunctions[name] {
		if _, set := config[key]; !set {
			t.Errorf("%s: lacks %s", name, key)
		}
	}
	var section chartSection
	node := config[name]
	if err := node.Decode(&section); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	// The first interface of a pod is eth0, the second, of Multus, net1.
	if s := section.SBI.Server; len(s) != 1 || s[0].Dev != "net1" || s[0].Port != 7777 {
		t.Errorf("%s: serves at %+v, want net1", name, s)
	}
	nrf := section.SBI.Client["nrf"]
	if (len(nrf) == 1) == (name == "nrf") || section.SBI.Client["scp"] != nil {
		t.Errorf("%s: asks %v, want the NRF alone", name, section.SBI.Client)
	}
	for _, uri := range nrf {
		a, err := netip.ParseAddrPort(strings.TrimPrefix(uri.URI, "http://"))
		if err != nil || at[a.Addr()] != "nrf" || a.Port() != 7777 {
			t.Errorf("%s: %s is not the NRF: %v", name, uri.URI, err)
		}
	}
}
