# find_package(ait): the library that runs compiled models, as ait::cpu, ait::cuda or ait::rocm, for the targets that are
# installed here. `ait runtime --target cpu --prefix DIR` installs one; then -DCMAKE_PREFIX_PATH=DIR finds it.
get_filename_component(_ait_prefix "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)

foreach(_ait_target cpu cuda rocm)
  set(_ait_library "${_ait_prefix}/lib/libait_${_ait_target}.so")
  if(EXISTS "${_ait_library}")
    set(ait_${_ait_target}_FOUND TRUE)
    if(NOT TARGET ait::${_ait_target})
      add_library(ait::${_ait_target} SHARED IMPORTED)
      set_target_properties(ait::${_ait_target} PROPERTIES
        IMPORTED_LOCATION "${_ait_library}"
        IMPORTED_SONAME "libait_${_ait_target}.so"
        INTERFACE_INCLUDE_DIRECTORIES "${_ait_prefix}/include")
    endif()
  endif()
endforeach()

# ait::cpu_static, from `ait runtime --static`: a program with it needs no libait_cpu.so.
set(_ait_archive "${_ait_prefix}/lib/libait_cpu.a")
if(EXISTS "${_ait_archive}" AND NOT TARGET ait::cpu_static)
  find_package(Threads REQUIRED)
  add_library(ait::cpu_static STATIC IMPORTED)
  set_target_properties(ait::cpu_static PROPERTIES
    IMPORTED_LOCATION "${_ait_archive}"
    INTERFACE_INCLUDE_DIRECTORIES "${_ait_prefix}/include"
    INTERFACE_LINK_LIBRARIES "Threads::Threads;${CMAKE_DL_LIBS}")
endif()

foreach(_ait_component ${ait_FIND_COMPONENTS})
  if(ait_FIND_REQUIRED_${_ait_component} AND NOT ait_${_ait_component}_FOUND)
    set(ait_FOUND FALSE)
    set(ait_NOT_FOUND_MESSAGE
      "${_ait_prefix} has no library for ${_ait_component}: run `ait runtime --target ${_ait_component} --prefix ${_ait_prefix}`")
  endif()
endforeach()
