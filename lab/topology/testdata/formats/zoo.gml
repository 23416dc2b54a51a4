Creator "a test"
graph [
  directed 1
  label "Two towns"
  node [ id 0 label "G&ouml;teborg" Latitude 57.70 Longitude 11.97 ]
  node [ id 1 label "Malmö" Latitude 55.60 Longitude 13.00 ]
  node [ id 2 label "yard" graphics [ x 10.0 y -20.5 w 30.0 ] gid 3 ]
  node [ id 3 label "a group" isGroup 1 ]
  edge [ source 0 target 1 LinkSpeedRaw 1000000000.0 ]
  edge [ source 1 target 0 ]
  edge [ source 1 target 2 ]
]
