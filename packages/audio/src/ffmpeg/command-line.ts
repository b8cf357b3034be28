/** Self-contained formats. No playlists: ffmpeg would open the files they name. */
const CONTAINERS = [
  'wav,w64,aiff,au,caf,flac,ogg,mp3,aac,ac3,eac3,amr,amrnb,amrwb,ape,wv,tta,tak,dsf,mpc,mpc8,voc,gsm,loas',
  'mov,mp4,m4a,3gp,3g2,mj2,matroska,webm,asf,avi,flv,mpeg,mpegts,rm,oma,xwma,dts,truehd,sox,ircam',
].join(',');

/** Decoders of the sound in these containers. No video and no picture is ever decoded, not even to probe a file. */
const CODECS = [
  'pcm_s8,pcm_s8_planar,pcm_u8,pcm_s16le,pcm_s16be,pcm_s16le_planar,pcm_s16be_planar,pcm_u16le,pcm_u16be,pcm_s24le',
  'pcm_s24be,pcm_s24le_planar,pcm_s24daud,pcm_u24le,pcm_u24be,pcm_s32le,pcm_s32be,pcm_s32le_planar,pcm_u32le,pcm_u32be',
  'pcm_s64le,pcm_s64be,pcm_f16le,pcm_f24le,pcm_f32le,pcm_f32be,pcm_f64le,pcm_f64be,pcm_alaw,pcm_mulaw,pcm_vidc',
  'pcm_bluray,pcm_dvd,pcm_lxf,pcm_sga',
  'adpcm_ima_wav,adpcm_ima_qt,adpcm_ms,adpcm_g722,adpcm_g726,adpcm_g726le,adpcm_swf,adpcm_yamaha,adpcm_ct',
  'adpcm_sbpro_2,adpcm_sbpro_3,adpcm_sbpro_4,g722,g726,g726le,g723_1,g729,gsm,gsm_ms,libgsm,libgsm_ms,truespeech',
  'mp1,mp1float,mp2,mp2float,mp3,mp3float,mp3adu,mp3adufloat,mp3on4,mp3on4float,aac,aac_fixed,aac_latm,libfdk_aac',
  'opus,libopus,vorbis,libvorbis,speex,libspeex,flac,alac,ilbc,libilbc,amrnb,amrwb,libopencore_amrnb,libopencore_amrwb',
  'wmav1,wmav2,wmapro,wmalossless,wmavoice,ac3,ac3_fixed,eac3,dca,mlp,truehd,ape,tta,tak,wavpack,mpc7,mpc8',
  'dsd_lsbf,dsd_msbf,dsd_lsbf_planar,dsd_msbf_planar,cook,ra_144,ra_288,sipr,atrac1,atrac3,atrac3al,atrac3p,atrac3pal',
  'atrac9,nellymoser,qdm2,qdmc,qcelp,evrc,mace3,mace6',
].join(',');

/** Reads a recording from standard input and writes its first sound track as WAV to standard output. */
export const FFMPEG_ARGUMENTS: readonly string[] = [
  ...'-nostdin -hide_banner -loglevel error -threads 1 -protocol_whitelist pipe'.split(' '),
  ...['-format_whitelist', CONTAINERS, '-codec_whitelist', CODECS, '-i', 'pipe:0'],
  ...'-map 0:a:0 -map_metadata -1 -bitexact -c:a pcm_f32le -f wav pipe:1'.split(' '),
];
