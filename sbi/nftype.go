package sbi

import (
	"slices"
	"strings"
)

// Those of 3GPP's types that nothing here calls by name (TS 29.510 §6.1.6.3.3).
var otherTypes = []NFType{
	"5G_DDNMF", "5G_EIR", "AANF", "ADRF", "AF", "BSF", "CBCF", "CEF", "CHF", "DCCF", "DCSF", "DRA", "EASDF", "GBA_BSF", "GMLC", "HSS", "ICSCF",
	"IMS_AS", "IP_SM_GW", "LMF", "MBSF", "MBSTF", "MB_SMF", "MB_UPF", "MF", "MFAF", "MME", "MNPF", "MRF", "MRFP", "N3IWF", "NEF", "NSACF", "NSSAAF", "NSSF",
	"NSWOF", "NWDAF", "PANF", "PCSCF", "PKMF", "RH", "SCEF", "SCSAS", "SCSCF", "SEPP", "SLPKMF", "SMSF", "SMS_GMSC", "SMS_IWMSC", "SMS_ROUTER", "SOR_AF", "SPAF",
	"TSCTSF", "UCMF", "UDR", "UDSF", "UPF",
}

// customPrefix begins the types that operators and vendors define.
const customPrefix = "CUSTOM_"

// Types returns the types of 3GPP, sorted.
func Types() []NFType {
	list := append([]NFType{NRF, AMF, SMF, AUSF, UDM, PCF, SCP}, otherTypes...)
	slices.Sort(list)
	return list
}

// Standard reports whether a type is one of 3GPP's, or begins with CUSTOM_.
func (t NFType) Standard() bool {
	rest, custom := strings.CutPrefix(string(t), customPrefix)
	return custom && rest != "" && typeForm.MatchString(string(t)) || slices.Contains(Types(), t)
}
