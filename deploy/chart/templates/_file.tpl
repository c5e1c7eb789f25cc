{{- /* A manifest of the kustomize base, for the namespace of the release. */ -}}
{{- define "egret.file" -}}
{{- $root := index . 0 -}}
{{- $root.Files.Get (index . 1) | replace "egret-system" $root.Release.Namespace | trim -}}
{{- end -}}
