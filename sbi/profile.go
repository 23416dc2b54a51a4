package sbi

import "slices"

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
	SCP  NFType = "SCP"
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
	HeartBeatTimer   int                  `json:"heartBeatTimer,omitzero"`    // seconds
	PLMNList         []PlmnID             `json:"plmnList,omitzero"`          // none: that of the NRF
	SNSSAIs          []Snssai             `json:"sNssais,omitzero"`           // none: any slice
	PerPLMNSNSSAIs   []PlmnSnssai         `json:"perPlmnSnssaiList,omitzero"` // counts instead of SNSSAIs
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
	PerPLMNSNSSAIs     []PlmnSnssai `json:"perPlmnSnssaiList,omitzero"` // counts instead of SNSSAIs
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
	SD         string    `json:"sd,omitzero"` // six hexadecimal digits; some leave out the first zeros
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

// A PlmnSnssai is the slices of one network.
type PlmnSnssai struct {
	PLMNID  PlmnID   `json:"plmnId"`
	SNSSAIs []Snssai `json:"sNssaiList"`
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
