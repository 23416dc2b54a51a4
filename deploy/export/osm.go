package export

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/weft-sdn/weft/internal/document"
)

// Pack says whether packages are written as archives instead of folders.
type Pack bool

// OSM's descriptors follow ETSI GS NFV-SOL 006 (VNFD and NSD) with OSM's own
// parts for functions in containers: kdu, k8s-cluster, kdu-resource-profile.
// Keys stand in the order of what they describe.
type node []document.Entry

func pair(key string, value any) document.Entry {
	return document.Entry{Key: key, Value: written(value)}
}

// written returns what descriptors are made of as it is written.
func written(value any) document.Value {
	list := document.Value{Kind: document.List}
	switch x := value.(type) {
	case node:
		return document.Value{Kind: document.Mapping, Entries: x}
	case string:
		return document.Value{Kind: document.Word, Text: x}
	case []node:
		for _, n := range x {
			list.Items = append(list.Items, written(n))
		}
		return list
	case []string:
		for _, s := range x {
			list.Items = append(list.Items, written(s))
		}
		return list
	}
	return document.Value{Kind: document.Plain, Text: fmt.Sprint(value)} // a number or a truth value
}

const (
	provider    = "Weft"
	network     = "control" // where workers, the bus, switches and clients meet
	networkPort = network + "-ext"
	flavour     = "default-df"
	scaleValue  = "scale" // the value of the chart whose replicaCount OSM sets to scale
)

// OSM returns packages for ETSI OSM: a network function for each worker, whose
// deployment is a Helm chart in the package, and network services: one for
// each partition of the plan and one for what is in none. For each number of
// replicas there are parameters with which a service is made.
func OSM(c Config, pack Pack) ([]File, error) {
	m, err := newModel(c)
	if err != nil {
		return nil, err
	}
	var packages []osmPackage
	for i := range m.Units {
		p, err := m.function(&m.Units[i])
		if err != nil {
			return nil, err
		}
		packages = append(packages, p)
	}
	services := m.networkServices()
	var files []File
	for _, s := range services {
		p, err := m.service(s)
		if err != nil {
			return nil, err
		}
		packages = append(packages, p)
		more, err := parameters(s, cmp.Or(m.BusURL, clusterBus), len(services) > 1)
		if err != nil {
			return nil, err
		}
		files = append(files, more...)
	}
	for _, p := range packages {
		list := below(p.name, append(p.files, checksums(below(p.name, p.files))))
		if pack {
			f, err := archive(p.name+".tar.gz", list)
			if err != nil {
				return nil, err
			}
			list = []File{f}
		}
		files = append(files, list...)
	}
	return sorted(files), nil
}

// osmPackage is a folder with a descriptor and what it refers to.
type osmPackage struct {
	name  string
	files []File
}

// function returns the package of a worker.
func (m *model) function(u *unit) (osmPackage, error) {
	name := m.functionName(u)
	chart, err := m.chart(name, []unit{*u}, u.Southern)
	if err != nil {
		return osmPackage{}, err
	}
	text, err := written(m.vnfd(u)).Readable()
	if err != nil {
		return osmPackage{}, fmt.Errorf("descriptor of %s: %w", name, err)
	}
	files := append(below("helm-chart-v3s/"+name, chart), File{name + "_vnfd.yaml", text})
	return osmPackage{name + "_knf", files}, nil
}

func (m *model) functionName(u *unit) string { return "weft-" + m.Name + "-" + u.Name }

// aspect describes the number of instances of a worker.
func (u *unit) aspect() string {
	text := fmt.Sprintf("Instances of %s; what they hold is sent to another when one goes.", u.Name)
	if u.Autoscale != nil {
		text += fmt.Sprintf(" The metric weft_scaler_wanted with worker=%q is how many are wanted.", u.Name)
	}
	return text
}

// vnfd describes a worker as a network function.
func (m *model) vnfd(u *unit) node {
	name := m.functionName(u)
	df := node{pair("id", flavour)}
	if u.Replicas > 1 {
		profile, least := u.Name+"-profile", 1
		if u.Autoscale != nil {
			least = u.Autoscale.Min
		}
		df = append(df,
			pair("kdu-resource-profile", []node{{
				pair("id", profile), pair("kdu-name", u.Name), pair("resource-name", scaleValue),
				pair("min-number-of-instances", least), pair("max-number-of-instances", u.Replicas),
			}}))
		if u.Scales {
			df = append(df, pair("scaling-aspect", []node{{
				pair("id", u.Name+"-scaling"), pair("name", u.Name+"-scaling"),
				pair("description", u.aspect()),
				pair("max-scale-level", u.Replicas-1),
				pair("aspect-delta-details", node{pair("deltas", []node{{
					pair("id", u.Name+"-delta"),
					pair("kdu-resource-delta", []node{{pair("id", profile), pair("number-of-instances", 1)}}),
				}})}),
			}}))
		}
	}
	return node{pair("vnfd", node{
		pair("id", name+"_knf"),
		pair("product-name", name),
		pair("provider", provider),
		pair("version", m.Version),
		pair("product-info-name", "Weft: "+u.Name),
		pair("product-info-description", fmt.Sprintf("Worker %s of plan %s of the SDN controller Weft, with the services %s.", u.Name, m.Name, list(u.Services))),
		pair("mgmt-cp", networkPort),
		pair("ext-cpd", []node{{pair("id", networkPort), pair("k8s-cluster-net", network)}}),
		pair("k8s-cluster", node{pair("nets", []node{{pair("id", network)}})}),
		pair("kdu", []node{{pair("name", u.Name), pair("helm-chart", name)}}),
		pair("df", []node{df}),
	})}
}

// networkService is a set of workers that is started together.
type networkService struct {
	name  string
	about string
	units []*unit
}

// networkServices divides the workers: the paper's "multiple NS" if the plan
// has partitions, else its "single NS".
func (m *model) networkServices() []networkService {
	var all []networkService
	for i := range m.Units {
		u := &m.Units[i]
		name, about := "weft-"+m.Name, fmt.Sprintf("Plan %s of the SDN controller Weft.", m.Name)
		if u.Partition != "" {
			name += "-" + u.Partition
			about = fmt.Sprintf("Partition %s of plan %s of the SDN controller Weft: the services for its share of the switches.", u.Partition, m.Name)
		}
		k := slices.IndexFunc(all, func(s networkService) bool { return s.name == name })
		if k < 0 {
			k, all = len(all), append(all, networkService{name: name, about: about})
		}
		all[k].units = append(all[k].units, u)
	}
	return all
}

// service returns the package of a network service.
func (m *model) service(s networkService) (osmPackage, error) {
	var functions []string
	var profiles []node
	for _, u := range s.units {
		name := m.functionName(u) + "_knf"
		functions = append(functions, name)
		profiles = append(profiles, node{
			pair("id", u.Name), pair("vnfd-id", name),
			pair("virtual-link-connectivity", []node{{
				pair("virtual-link-profile-id", network),
				pair("constituent-cpd-id", []node{{
					pair("constituent-base-element-id", u.Name), pair("constituent-cpd-id", networkPort),
				}}),
			}}),
		})
	}
	text, err := written(node{pair("nsd", node{pair("nsd", []node{{
		pair("id", s.name+"_ns"),
		pair("name", s.name),
		pair("designer", provider),
		pair("version", m.Version),
		pair("description", s.about),
		pair("vnfd-id", functions),
		pair("virtual-link-desc", []node{{pair("id", network), pair("mgmt-network", true)}}),
		pair("df", []node{{pair("id", flavour), pair("vnf-profile", profiles)}}),
	}})})}).Readable()
	if err != nil {
		return osmPackage{}, fmt.Errorf("descriptor of %s: %w", s.name, err)
	}
	return osmPackage{s.name + "_ns", []File{{s.name + "_nsd.yaml", text}}}, nil
}

// parameters returns what ns-create is given for each number of replicas: the
// paper's runs with one, two and three.
func parameters(s networkService, bus string, several bool) ([]File, error) {
	most := 1
	for _, u := range s.units {
		if u.Scales {
			most = max(most, u.Replicas)
		}
	}
	var files []File
	for n := 1; n <= most; n++ {
		var members []node
		for _, u := range s.units {
			values := node{pair("bus", node{pair("url", bus)})}
			if u.Scales {
				values = append(values, pair(scaleValue, node{pair("replicaCount", min(n, u.Replicas))}))
			}
			members = append(members, node{
				pair("member-vnf-index", u.Name),
				pair("additionalParamsForKdu", []node{{pair("kdu_name", u.Name), pair("additionalParams", values)}}),
			})
		}
		text, err := written(node{pair("additionalParamsForVnf", members)}).Readable()
		if err != nil {
			return nil, fmt.Errorf("parameters of %s: %w", s.name, err)
		}
		name := fmt.Sprintf("params-%d.yaml", n)
		if several {
			name = fmt.Sprintf("params-%s-%d.yaml", s.name, n)
		}
		files = append(files, File{name, text})
	}
	return files, nil
}

// list writes names as in a sentence.
func list(names []string) string {
	switch len(names) {
	case 0:
		return "none"
	case 1:
		return names[0]
	}
	text := names[0]
	for _, n := range names[1 : len(names)-1] {
		text += ", " + n
	}
	return text + " and " + names[len(names)-1]
}
