package sbi

import (
	"net/netip"
	"slices"
	"strings"
)

// An NFType is a type of network function, such as AMF.
type NFType string

// The types that Weft speaks of; others are as good.
const (
	NRF  NFType = "NRF"
	AMF  NFType = "AMF"
	SMF  NFType = "SMF"
	AUSF NFType = "AUSF"
	UDM  NFType = "UDM"
	PCF  NFType = "PCF"
)

// An NFStatus is the status of an instance, or of one of its services.
type NFStatus string

// Only what is Registered is discovered.
const (
	Registered     NFStatus = "REGISTERED"
	Suspended      NFStatus = "SUSPENDED" // its heartbeats stay away
	Undiscoverable NFStatus = "UNDISCOVERABLE"
	CanaryRelease  NFStatus = "CANARY_RELEASE"
)

// An NFProfile is what an instance of a network function registers at the NRF.
type NFProfile struct {
	NFInstanceID     string               `json:"nfInstanceId"` // a UUID
	NFInstanceName   string               `json:"nfInstanceName,omitzero"`
	NFType           NFType               `json:"nfType"`
	NFStatus         NFStatus             `json:"nfStatus"`
	HeartBeatTimer   int                  `json:"heartBeatTimer,omitzero"` // seconds
	PLMNList         []PlmnID             `json:"plmnList,omitzero"`       // none: that of the NRF
	SNSSAIs          []Snssai             `json:"sNssais,omitzero"`        // none: any slice
	FQDN             string               `json:"fqdn,omitzero"`
	IPv4Addresses    []string             `json:"ipv4Addresses,omitzero"`
	IPv6Addresses    []string             `json:"ipv6Addresses,omitzero"`
	AllowedPLMNs     []PlmnID             `json:"allowedPlmns,omitzero"`
	AllowedNFTypes   []NFType             `json:"allowedNfTypes,omitzero"`
	AllowedNFDomains []string             `json:"allowedNfDomains,omitzero"` // regular expressions of FQDNs
	AllowedNSSAIs    []Snssai             `json:"allowedNssais,omitzero"`
	Priority         *int                 `json:"priority,omitzero"` // 0 to 65535, the lowest preferred
	Capacity         *int                 `json:"capacity,omitzero"` // 0 to 65535, relative
	Load             *int                 `json:"load,omitzero"`     // percent
	Locality         string               `json:"locality,omitzero"`
	NFSetIDList      []string             `json:"nfSetIdList,omitzero"`
	NFServices       []NFService          `json:"nfServices,omitzero"`
	NFServiceList    map[string]NFService `json:"nfServiceList,omitzero"` // by serviceInstanceId; instead of NFServices
	Unknown          Unknown
}

// An NFService is one service of an instance. What it says of priority, capacity,
// load, slices and who is allowed counts instead of what the profile says.
type NFService struct {
	ServiceInstanceID  string       `json:"serviceInstanceId"`
	ServiceName        string       `json:"serviceName"` // such as nudm-sdm
	Versions           []Version    `json:"versions"`
	Scheme             string       `json:"scheme"` // http or https
	NFServiceStatus    NFStatus     `json:"nfServiceStatus"`
	FQDN               string       `json:"fqdn,omitzero"`
	IPEndPoints        []IPEndPoint `json:"ipEndPoints,omitzero"` // none: the profile's addresses
	APIPrefix          string       `json:"apiPrefix,omitzero"`
	AllowedPLMNs       []PlmnID     `json:"allowedPlmns,omitzero"`
	AllowedNFTypes     []NFType     `json:"allowedNfTypes,omitzero"`
	AllowedNFDomains   []string     `json:"allowedNfDomains,omitzero"`
	AllowedNSSAIs      []Snssai     `json:"allowedNssais,omitzero"`
	Priority           *int         `json:"priority,omitzero"`
	Capacity           *int         `json:"capacity,omitzero"`
	Load               *int         `json:"load,omitzero"`
	NFServiceSetIDList []string     `json:"nfServiceSetIdList,omitzero"`
	SNSSAIs            []Snssai     `json:"sNssais,omitzero"`
	OAuth2Required     bool         `json:"oauth2Required,omitzero"`
	Unknown            Unknown
}

// A Version is a version of the API of a service.
type Version struct {
	APIVersionInURI string `json:"apiVersionInUri"` // such as v1
	APIFullVersion  string `json:"apiFullVersion"`
	Unknown         Unknown
}

// An IPEndPoint is where a service is reached.
type IPEndPoint struct {
	IPv4Address string `json:"ipv4Address,omitzero"`
	IPv6Address string `json:"ipv6Address,omitzero"` // one of the two, or none: the profile's
	Transport   string `json:"transport,omitzero"`   // TCP
	Port        *int   `json:"port,omitzero"`        // none: that of the scheme
	Unknown     Unknown
}

// A Snssai names a slice: its type and, if SD is not empty, which of that type.
type Snssai struct {
	SST        uint8     `json:"sst"`
	SD         string    `json:"sd,omitzero"` // six hexadecimal digits
	SDRanges   []SDRange `json:"sdRanges,omitzero"`
	WildcardSD bool      `json:"wildcardSd,omitzero"` // any SD
	Unknown    Unknown
}

// An SDRange is slices of one type.
type SDRange struct {
	Start   string `json:"start"`
	End     string `json:"end"`
	Unknown Unknown
}

// A PlmnID names a mobile network.
type PlmnID struct {
	MCC     string `json:"mcc"` // three digits
	MNC     string `json:"mnc"` // two or three digits
	Unknown Unknown
}

// Services returns the services of a profile, which has them in one of two
// members; those of nfServiceList by their keys.
func (p *NFProfile) Services() []NFService {
	all := slices.Clone(p.NFServices)
	for _, key := range sortedKeys(p.NFServiceList) {
		if !slices.ContainsFunc(all, func(s NFService) bool { return s.ServiceInstanceID == key }) {
			all = append(all, p.NFServiceList[key])
		}
	}
	return all
}

// An EndPoint is a place at which a service of an instance is reached, with what
// counts for choosing it.
type EndPoint struct {
	Service  string
	Scheme   string
	Addr     netip.AddrPort
	Prefix   string // of its paths
	Priority int    // the lowest preferred
	Capacity int    // relative
	Load     int    // percent
}

// DefaultCapacity is the capacity of an instance that says nothing of it.
const DefaultCapacity = 100

// EndPoints returns where the registered services of a profile are reached by
// address. Names are not resolved.
func (p *NFProfile) EndPoints() []EndPoint {
	var all []EndPoint
	for _, s := range p.Services() {
		if s.NFServiceStatus != Registered {
			continue
		}
		e := EndPoint{
			Service: s.ServiceName, Scheme: s.Scheme, Prefix: strings.TrimSuffix(s.APIPrefix, "/"),
			Priority: firstOf(0, s.Priority, p.Priority), Capacity: firstOf(DefaultCapacity, s.Capacity, p.Capacity), Load: firstOf(0, s.Load, p.Load),
		}
		points := s.IPEndPoints
		if len(points) == 0 {
			points = []IPEndPoint{{}}
		}
		for _, point := range points {
			port := firstOf(portOf(s.Scheme), point.Port)
			for _, a := range p.addressesOf(point) {
				e.Addr = netip.AddrPortFrom(a, uint16(port))
				all = append(all, e)
			}
		}
	}
	return all
}

// Addresses returns the addresses that a profile and its services name.
func (p *NFProfile) Addresses() []netip.Addr {
	all := p.addressesOf(IPEndPoint{})
	for _, s := range p.Services() {
		for _, point := range s.IPEndPoints {
			for _, a := range p.addressesOf(point) {
				if !slices.Contains(all, a) {
					all = append(all, a)
				}
			}
		}
	}
	return all
}

// addressesOf returns the addresses of an end point, which are the profile's if
// it has none of its own.
func (p *NFProfile) addressesOf(point IPEndPoint) []netip.Addr {
	texts := []string{point.IPv4Address, point.IPv6Address}
	if point.IPv4Address == "" && point.IPv6Address == "" {
		texts = append(slices.Clone(p.IPv4Addresses), p.IPv6Addresses...)
	}
	var all []netip.Addr
	for _, text := range texts {
		if a, err := netip.ParseAddr(text); err == nil {
			all = append(all, a.Unmap())
		}
	}
	return all
}

func portOf(scheme string) int {
	if scheme == "https" {
		return 443
	}
	return 80
}

// firstOf returns the first number that is there.
func firstOf(otherwise int, numbers ...*int) int {
	for _, n := range numbers {
		if n != nil {
			return *n
		}
	}
	return otherwise
}
